"use strict";
// The file that is shown, with the colours of its language.

const LANGUAGES = {cpp: "cpp", h: "cpp", py: "python", pyi: "python", toml: "toml", yml: "yaml"};

function showFile() {
  const [path, text] = [state.chosen, state.written.get(state.chosen)];
  const language = LANGUAGES[path.split(".").at(-1)];
  $("path").textContent = path;
  $("content").textContent = text;
  // Prism escapes the text.
  if (language) $("content").innerHTML = Prism.highlight(text, Prism.languages[language], language);
  for (const item of $("tree").querySelectorAll("[aria-selected]")) {
    item.ariaSelected = String(item.dataset.path === path);
  }
}
