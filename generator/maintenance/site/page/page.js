// The page: the choices, and the files that the commands would write for them.

const {features: FEATURES, presets: PRESETS, owners: OWNERS} = DATA;
const CUSTOM = "custom";
const README = "README.md";
const forms = (name) => ({
  plain: name,
  dashed: name.replaceAll("_", "-"),
  upper: name.toUpperCase(),
  prose: name.split("_").map((word) => word.slice(0, 1).toUpperCase() + word.slice(1)).join(" "),
});
const MARKER = forms(DATA.marker);

const $ = (id) => document.getElementById(id);
// The last valid name, the shown file, the tree's entry in the tab order, open folders, files and their owners.
const state = {name: DATA.name.default, chosen: README, stop: "", opened: new Set(), written: new Map(), owners: new Map()};

function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

// A text of the render with the chosen name.
function named(text) {
  const wanted = forms(state.name);
  return Object.entries(MARKER).reduce((done, [form, marker]) => done.replaceAll(marker, wanted[form]), text);
}

function closure(wanted) {
  const grown = new Set(wanted);
  for (const id of grown) FEATURES[id].requires.forEach((needed) => grown.add(needed));
  return grown;
}

const boxes = () => [...document.querySelectorAll("input[name=features]")];
const picked = () => boxes().filter((box) => box.checked).map((box) => box.value);

function pick(features) {
  for (const box of boxes()) box.checked = features.includes(box.value);
}

function choices() {
  const on = closure(picked());
  const features = Object.keys(FEATURES).filter((id) => on.has(id));
  const preset = Object.keys(PRESETS).find((id) => String(PRESETS[id].features) === String(features));
  return {name: $("backend_name").value, preset: preset ?? CUSTOM, features};
}

function problem(name) {
  if (!/^[a-z]+(_[a-z]+)*$/.test(name) || name.length > 50) return `${DATA.name.help}, 50 at most`;
  return Object.hasOwn(DATA.reserved, name) ? DATA.reserved[name] : "";
}

function update() {
  const {name, preset, features} = choices();
  for (const box of boxes()) {
    const by = picked().filter((id) => id !== box.value && closure([id]).has(box.value));
    box.closest(".box").querySelector(".because").textContent = by.length ? `on: required by ${by.join(", ")}` : "";
  }
  for (const button of document.querySelectorAll("input[name=preset]")) button.checked = button.value === preset;
  const wrong = problem(name);
  $("backend_name-problem").textContent = wrong;
  $("backend_name").setAttribute("aria-invalid", String(wrong !== ""));
  document.body.classList.toggle("wrong", wrong !== "");
  for (const button of document.querySelectorAll("#take button")) button.disabled = wrong !== "";
  if (!wrong) state.name = name;
  for (const [id, text] of Object.entries(commands(preset, features))) showCommand($(id), text);
  showFiles(features);
  writeLink();
}

function showFiles(features) {
  const shown = Object.entries(DATA.files).filter(([, file]) => file.features.every((id) => features.includes(id)));
  state.written = new Map(shown.map(([path, file]) => [named(path), file]));
  state.owners = new Map(Object.entries(OWNERS).map(([path, id]) => [named(path), id]));
  $("root").textContent = named(`torch-${MARKER.dashed}`);
  if (!state.written.has(state.chosen)) state.chosen = README;
  showTree();
  showFile();
}

function choose(path) {
  state.chosen = path;
  showFile();
  writeLink();
}

function option(type, name, value, title, ...notes) {
  return make("div", {className: "box"},
    make("label", {}, make("input", {type, name, value}), make("span", {textContent: title})), ...notes);
}

function start() {
  $("backend_name-help").textContent = DATA.name.help;
  for (const [id, {title}] of Object.entries(PRESETS)) $("presets").append(option("radio", "preset", id, title));
  let last = "";
  for (const [id, {group, title, help, requires, files, lines}] of Object.entries(FEATURES)) {
    if (group !== last) $("features").append(make("h2", {textContent: group}));
    last = group;
    const needs = requires.length ? ` Requires ${requires.join(", ")}.` : "";
    const size = ` ${files.toLocaleString("en")} files, ${lines.toLocaleString("en")} lines.`;
    $("features").append(option("checkbox", "features", id, title,
      make("small", {textContent: `${help}.${needs}${size}`}), make("small", {className: "because"})));
  }
  $("presets").addEventListener("input", (event) => pick(PRESETS[event.target.value]?.features ?? picked()));
  $("questions").addEventListener("input", update);
  $("questions").addEventListener("submit", (event) => event.preventDefault());
  for (const button of document.querySelectorAll("[data-copies]")) {
    button.addEventListener("click", () => copyText($(button.dataset.copies)));
  }
  $("filter").addEventListener("input", showTree);
  $("tree").addEventListener("keydown", onTreeKey);
  $("tree").addEventListener("click", (event) => {
    const label = event.target.closest(".name");
    if (label) activate(label.parentElement);
  });
  if (DATA.docs) $("docs").href = DATA.docs;
  else $("docs").remove();
  addEventListener("hashchange", () => {
    readLink();
    update();
  });
  readLink();
  update();
}

start();
// Tests and benchmarks wait for this.
Object.assign(window, {torchsmith: {choose, choices, problem, textOf, written: () => [...state.written.keys()]}});
