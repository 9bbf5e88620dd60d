// The page: the questions, and the files that copier would write for the answers.

const FEATURES = catalog.values.catalog;
const PRESETS = {...catalog.values.presets, full: Object.keys(FEATURES)};
const DTYPES = catalog.values.dtype_catalog;
const TEXTS = Object.keys(catalog.questions).filter((name) => document.querySelector(`input#${name}`));
const LISTS = Object.keys(catalog.questions).filter((name) => document.querySelector(`select#${name}`));
const README = "README.md";

const $ = (id) => document.getElementById(id);
// What is shown, and which entry of the tree is in the tab order.
const state = {chosen: README, stop: "", opened: new Set(), touched: new Set(), written: new Map(), owner: () => ""};

function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function closure(wanted) {
  const grown = new Set(wanted);
  for (const id of grown) FEATURES[id].requires.forEach((needed) => grown.add(needed));
  return grown;
}

function fields(name) {
  return [...document.querySelectorAll(`input[name=${name}]`)];
}

function checked(name) {
  return fields(name).filter((box) => box.checked).map((box) => box.value);
}

// The features that the device requires: one other than the simulator is a feature itself.
function ofDevice() {
  return closure([$("device").value].filter((id) => id in FEATURES));
}

function answersGiven() {
  const picked = checked("features");
  if (!state.touched.has("device")) $("device").value = standard("device", {preset: "custom", features: picked});
  const on = closure([...picked, ...ofDevice()]);
  const same = (preset) => picked.length === preset.length && picked.every((id) => preset.includes(id));
  const answers = {
    dtypes: checked("dtypes"),
    preset: Object.keys(PRESETS).find((name) => same(PRESETS[name])) ?? "custom",
    features: Object.keys(FEATURES).filter((id) => on.has(id)),
    ...Object.fromEntries(LISTS.map((name) => [name, $(name).value])),
  };
  for (const name of TEXTS) {
    if (!state.touched.has(name)) $(name).value = standard(name, answers);
    answers[name] = $(name).value;
  }
  return answers;
}

function update() {
  const answers = answersGiven();
  const on = closure([...checked("features"), ...ofDevice()]);
  for (const box of fields("features")) {
    const by = checked("features").filter((id) => id !== box.value && closure([id]).has(box.value));
    if (ofDevice().has(box.value)) by.push("the device");
    box.parentElement.parentElement.querySelector(".because").textContent =
      on.has(box.value) && by.length ? `on: required by ${by.join(", ")}` : "";
  }
  const wrong = problems(answers);
  for (const name of TEXTS) {
    $(`${name}-problem`).textContent = wrong[name] ?? "";
    $(name).setAttribute("aria-invalid", String(name in wrong));
  }
  const fine = !Object.keys(wrong).length;
  document.body.classList.toggle("wrong", !fine);
  for (const button of document.querySelectorAll("#take button")) button.disabled = !fine;
  if (fine) {
    for (const [id, text] of Object.entries(commands(answers))) showCommand($(id), text);
    showFiles(answers);
  }
  writeLink(answers);
}

// Lines do not break within an option.
function showCommand(element, text) {
  const option = (textContent) => make("span", {className: "option", textContent});
  element.replaceChildren(...text.split(/( )/).map((word) => (word.startsWith("-") ? option(word) : word)));
}

function showFiles(answers) {
  const jinja = interpreter(answers);
  const package_ = jinja.globals("package");
  state.written = new Map(rendered(answers).map((file) => [file.path, file]));
  const owned = ({paths, ci_paths = {}}) => [...paths, ...Object.values(ci_paths).flat()];
  // The feature that owns the innermost folder, or the file itself.
  state.owner = (path) => Object.keys(FEATURES)
    .flatMap((id) => owned(FEATURES[id]).map((pattern) => [pattern.replaceAll("{package}", package_), id]))
    .filter(([pattern]) => matches(pattern, path))
    .sort(([one], [other]) => other.length - one.length)[0]?.[1] ?? "";
  $("root").textContent = jinja.globals("distribution");
  if (!state.written.has(state.chosen)) state.chosen = README;
  showTree();
  showFile();
}

function choose(path) {
  state.chosen = path;
  showFile();
  writeLink(answersGiven());
}

function boxes(name, rows) {
  for (const [id, {title, help = "", requires = [], required = false}] of Object.entries(rows)) {
    const box = make("input", {type: "checkbox", name, value: id, disabled: required});
    const needs = requires.length ? ` Requires ${requires.join(", ")}.` : "";
    $(name).append(make("div", {className: "box"},
      make("label", {}, box, make("span", {textContent: title})),
      make("small", {textContent: `${help}${needs}`}), make("small", {className: "because"})));
  }
}

function start() {
  boxes("features", FEATURES);
  const dtypes = Object.entries(DTYPES).map(([id, {title, required}]) => [id, {title: id, help: title, required}]);
  boxes("dtypes", Object.fromEntries(dtypes));
  for (const name of LISTS) {
    for (const [label, value] of Object.entries(catalog.questions[name].choices)) {
      $(name).append(make("option", {value, textContent: label}));
    }
    $(name).addEventListener("change", update);
  }
  for (const name of TEXTS) $(`${name}-help`).textContent = catalog.questions[name].help;
  $("questions").addEventListener("input", (event) => {
    if (event.target.type === "text" || event.target.id === "device") state.touched.add(event.target.id);
    update();
  });
  $("questions").addEventListener("submit", (event) => event.preventDefault());
  for (const [button, picked] of [["every", true], ["none", false]]) {
    $(button).addEventListener("click", () => {
      for (const box of fields("features")) box.checked = picked;
      update();
    });
  }
  for (const button of document.querySelectorAll("[data-copies]")) {
    button.addEventListener("click", () => copyText($(button.dataset.copies)));
  }
  $("zip").addEventListener("click", () => save(`${$("root").textContent}.zip`, zipped(answersGiven())));
  $("download").addEventListener("click", () => save("answers.yml", answersFile(answersGiven())));
  $("filter").addEventListener("input", showTree);
  $("tree").addEventListener("keydown", onTreeKey);
  $("tree").addEventListener("click", (event) => {
    const label = event.target.closest(".name");
    if (label) activate(label.parentElement);
  });
  if (docs) $("docs").href = docs;
  else $("docs").remove();
  addEventListener("hashchange", () => {
    readLink();
    update();
  });
  readLink();
  update();
}

function save(name, content) {
  const url = URL.createObjectURL(new Blob([content]));
  make("a", {href: url, download: name}).click();
  URL.revokeObjectURL(url);
}

// Without access to the clipboard the text is selected instead.
async function copyText(element) {
  try {
    await navigator.clipboard.writeText(element.textContent);
    $("said").textContent = "Copied.";
  } catch {
    getSelection().selectAllChildren(element);
    $("said").textContent = "Selected: copy it with the keyboard.";
  }
}

start();
// For tests and benchmarks, which wait for it.
Object.assign(window, {torchsmith: {render, problems, answersFile, zipped}, answersGiven, choose});
