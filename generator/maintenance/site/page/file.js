// The file that is shown, with syntax highlighting.

const LANGUAGES = {cpp: "cpp", h: "cpp", py: "python", pyi: "python", toml: "toml", yml: "yaml"};

// Prism's tokens as elements. Prism's own HTML would replace non-breaking spaces by blanks.
function colored(tokens) {
  return [tokens].flat().map((token) => {
    if (typeof token === "string") return token;
    return make("span", {className: ["token", token.type, token.alias].flat().join(" ")}, ...colored(token.content));
  });
}

function showFile() {
  const {path, text} = state.written.get(state.chosen);
  const language = LANGUAGES[path.split(".").at(-1)];
  $("path").textContent = path;
  $("content").replaceChildren(...(language ? colored(Prism.tokenize(text, Prism.languages[language])) : [text]));
  for (const item of $("tree").querySelectorAll("[aria-selected]")) {
    item.ariaSelected = String(item.dataset.path === path);
  }
}
