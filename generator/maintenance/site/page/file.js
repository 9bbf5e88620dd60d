// The file that is shown, with syntax highlighting.

const LANGUAGES = {cpp: "cpp", h: "cpp", py: "python", pyi: "python", toml: "toml", yml: "yaml"};

// Prism's tokens as elements. Prism's own HTML would replace non-breaking spaces by blanks.
function colored(tokens) {
  return [tokens].flat().map((token) => {
    if (typeof token === "string") return token;
    return make("span", {className: ["token", token.type, token.alias].flat().join(" ")}, ...colored(token.content));
  });
}

// The preset with the fewest features to add and to remove, of those with the same device.
function nearest(features) {
  const differs = (preset) => (id) => PRESETS[preset].features.includes(id) !== features.includes(id);
  const far = (preset) => Object.keys(FEATURES).filter(differs(preset)).length;
  return Object.keys(PRESETS)
    .filter((preset) => !differs(preset)("simulator"))
    .reduce((one, other) => (far(other) < far(one) ? other : one));
}

// A file's text; if it depends on the features, the text of the nearest preset.
function textOf(path, features = choices().features) {
  const {text, presets} = state.written.get(path);
  return named(presets[nearest(features)] ?? text);
}

function showFile() {
  const path = state.chosen;
  const {preset, features} = choices();
  const language = LANGUAGES[path.split(".").at(-1)];
  const text = textOf(path, features);
  const depends = preset === CUSTOM && Object.keys(state.written.get(path).presets).length > 0;
  $("path").textContent = path;
  $("nearest").textContent = depends
    ? `This file depends on the features: it is shown as for the preset ${nearest(features)}, the nearest to your choice.`
    : "";
  $("content").replaceChildren(...(language ? colored(Prism.tokenize(text, Prism.languages[language])) : [text]));
  for (const item of $("tree").querySelectorAll("[aria-selected]")) {
    item.ariaSelected = String(item.dataset.path === path);
  }
}
