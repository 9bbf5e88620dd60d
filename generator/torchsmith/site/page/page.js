"use strict";
// The page: questions on one side; on the other what copier would write for their answers.

const {catalog, files, source, commit} = DATA;
const FEATURES = catalog.values.catalog;
const DTYPES = catalog.values.dtype_catalog;
const ORDINARY = Object.keys(DTYPES).filter((name) => DTYPES[name].default);

// --- What copier does ---

// Jinja with some answers, where computed values are computed when asked for.
function interpreter(answers) {
  const seen = new Map();
  const known = {
    ...catalog.values,
    ...answers,
    _copier_conf: catalog.outside,
    _copier_answers: recorded(answers),
  };
  const jinja = new Jinja(
    (name) => {
      if (Object.hasOwn(known, name)) return known[name];
      if (!Object.hasOwn(catalog.computed, name)) return undefined;
      if (!seen.has(name)) {
        const {yaml, template} = catalog.computed[name];
        const text = jinja.render(template);
        seen.set(name, yaml ? words(text) : text);
      }
      return seen.get(name);
    },
    catalog.macros,
    catalog.includes,
  );
  return jinja;
}

// A YAML list of plain words, "[a, b]".
function words(text) {
  return text.trim().slice(1, -1).split(",").map((word) => word.trim()).filter(Boolean);
}

// What the answers file says.
function recorded(answers) {
  const kept = {...answers, _commit: commit, _src_path: source};
  if (answers.preset !== "custom") delete kept.features;
  return kept;
}

// The files that copier writes, by path.
function render(answers) {
  const jinja = interpreter(answers);
  const patterns = catalog.exclude.map((pattern) => jinja.render(pattern)).join("\n").split("\n").filter(Boolean);
  const written = new Map();
  for (const {path, content} of files) {
    const target = jinja.render(path);
    if (!patterns.some((pattern) => matches(pattern, target))) {
      written.set(target, typeof content === "string" ? content : jinja.render(content));
    }
  }
  return new Map([...written].sort(([one], [other]) => (one < other ? -1 : 1)));
}

function matches(pattern, path) {
  if (pattern.startsWith("/")) return `/${path}` === pattern || `/${path}`.startsWith(`${pattern}/`);
  return path.split("/").some((part) => part === pattern ||
                              (pattern.startsWith("*") && part.endsWith(pattern.slice(1))));
}

// What the template's checks say of the answers, by question.
function problems(answers) {
  const jinja = interpreter(answers);
  const limits = {display_name: 40, vendor: 80, description: 200};
  const found = {backend_name: jinja.call("name_problem", answers.backend_name)};
  for (const [name, limit] of Object.entries(limits)) {
    found[name] = jinja.call("text_problem", name, answers[name], limit);
  }
  const said = Object.entries(found).map(([name, text]) => [name, Jinja.trim(text)]);
  return Object.fromEntries(said.filter(([, text]) => text));
}

function suggested(name, answers) {
  return interpreter(answers).render(catalog.defaults[name]);
}

// --- What the user takes along ---

// The answers that are not what copier would take by itself.
function different(answers) {
  const kept = {backend_name: answers.backend_name};
  for (const name of ["display_name", "vendor", "description"]) {
    if (answers[name] !== suggested(name, answers)) kept[name] = answers[name];
  }
  if (answers.license !== "apache-2.0") kept.license = answers.license;
  if (answers.dtypes.join() !== ORDINARY.join()) kept.dtypes = answers.dtypes;
  if (answers.preset === "minimal") kept.preset = "minimal";
  if (answers.preset === "custom") kept.features = answers.features;
  if (answers.ci_provider !== "github") kept.ci_provider = answers.ci_provider;
  return kept;
}

function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
}

function command(answers) {
  const given = Object.entries(different(answers)).map(([name, value]) => {
    const text = Array.isArray(value) ? `[${value.join(", ")}]` : value;
    return `-d ${quoted(`${name}=${text}`)}`;
  });
  const distribution = interpreter(answers).globals("distribution");
  return ["copier copy --vcs-ref HEAD --defaults", ...given, quoted(source), distribution].join(" ");
}

function answersFile(answers) {
  return YAML.dump(different(answers));
}

window.torchsmith = {render, problems, command, answersFile, dump: YAML.dump};

// --- The page itself ---

const $ = (id) => document.getElementById(id);
const state = {chosen: null, opened: new Set(), touched: new Set()};

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

function checked(name) {
  return [...document.querySelectorAll(`input[name=${name}]:checked`)].map((box) => box.value);
}

function answersGiven() {
  const ids = Object.keys(FEATURES);
  const picked = checked("features");
  const on = closure(picked);
  const answers = {
    backend_name: $("backend_name").value,
    license: $("license").value,
    dtypes: checked("dtypes"),
    preset: picked.length === ids.length ? "full" : picked.length ? "custom" : "minimal",
    features: ids.filter((id) => on.has(id)),
    ci_provider: $("ci_provider").value,
  };
  for (const name of ["display_name", "vendor", "description"]) {
    if (!state.touched.has(name)) $(name).value = suggested(name, answers);
    answers[name] = $(name).value;
  }
  return answers;
}

function update() {
  const answers = answersGiven();
  const on = closure(checked("features"));
  for (const box of document.querySelectorAll("input[name=features]")) {
    const by = checked("features").filter((id) => id !== box.value && closure([id]).has(box.value));
    box.parentElement.parentElement.querySelector(".because").textContent =
      on.has(box.value) && by.length ? `on: required by ${by.join(", ")}` : "";
  }
  const wrong = problems(answers);
  for (const name of ["backend_name", "display_name", "vendor", "description"]) {
    $(`${name}-problem`).textContent = wrong[name] ?? "";
    $(name).setAttribute("aria-invalid", String(name in wrong));
  }
  const fine = !Object.keys(wrong).length;
  document.body.classList.toggle("wrong", !fine);
  for (const button of [$("copy"), $("download")]) button.disabled = !fine;
  if (!fine) return;
  $("command").textContent = command(answers);
  showTree(render(answers), answers);
}

function showTree(written, answers) {
  const package_ = `torch_${answers.backend_name}`;
  const owner = (path) => Object.keys(FEATURES).find((id) => FEATURES[id].paths.some(
    (owned) => matches(owned.replaceAll("{package}", package_), path))) ?? "";
  const root = new Map();
  for (const path of written.keys()) {
    const parts = path.split("/");
    const name = parts.pop();
    let folder = root;
    for (const part of parts) {
      if (!folder.has(part)) folder.set(part, new Map());
      folder = folder.get(part);
    }
    folder.set(name, path);
  }
  state.written = written;
  // Keyboard users stay where they were: the tree is made anew.
  const focused = document.activeElement?.dataset?.path;
  $("tree").replaceChildren(branch(root, "", owner));
  $("count").textContent = `${written.size} files`;
  $("root").textContent = interpreter(answers).globals("distribution");
  if (!written.has(state.chosen)) state.chosen = "README.md";
  showFile();
  if (focused) document.querySelector(`[data-path="${CSS.escape(focused)}"]`)?.focus({preventScroll: true});
}

function branch(folder, at, owner) {
  const list = make("ul");
  const entries = [...folder].sort(([one, first], [other, second]) =>
    (typeof first === "string") - (typeof second === "string") || (one < other ? -1 : 1));
  for (const [name, inside] of entries) {
    const path = at ? `${at}/${name}` : name;
    const id = owner(path);
    const above = at && owner(at);
    const label = id && !above ? make("span", {className: "owner", textContent: id}) : "";
    if (typeof inside === "string") {
      const button = make("button", {type: "button", textContent: name});
      button.dataset.path = path;
      button.addEventListener("click", () => {
        state.chosen = path;
        showFile();
      });
      list.append(make("li", {}, button, label));
    } else {
      const summary = make("summary", {textContent: `${name}/`});
      summary.dataset.path = path;
      summary.append(label);
      const details = make("details", {open: state.opened.has(path)}, summary, branch(inside, path, owner));
      details.addEventListener("toggle", () => {
        if (details.open) state.opened.add(path);
        else state.opened.delete(path);
      });
      list.append(make("li", {}, details));
    }
  }
  return list;
}

function showFile() {
  $("path").textContent = state.chosen;
  $("content").textContent = state.written.get(state.chosen);
  for (const button of document.querySelectorAll("#tree button")) {
    button.toggleAttribute("aria-current", button.dataset.path === state.chosen);
  }
}

function boxes(name, rows) {
  for (const [id, row] of Object.entries(rows)) {
    const box = make("input", {
      type: "checkbox", name, value: id, checked: row.on, disabled: Boolean(row.required),
    });
    const needs = row.requires?.length ? ` Requires ${row.requires.join(", ")}.` : "";
    $(name).append(make("div", {className: "box"},
      make("label", {}, box, make("span", {textContent: row.title})),
      make("small", {textContent: `${row.help ?? ""}${needs}`}), make("small", {className: "because"})));
  }
}

function start() {
  boxes("features", Object.fromEntries(Object.entries(FEATURES).map(([id, row]) => [id, {...row, on: true}])));
  boxes("dtypes", Object.fromEntries(Object.entries(DTYPES).map(
    ([id, row]) => [id, {title: id, help: row.title, on: row.default, required: row.required}])));
  for (const [name, choices] of Object.entries(catalog.choices)) {
    for (const [label, value] of Object.entries(choices)) $(name).append(make("option", {value, textContent: label}));
    $(name).value = {license: "apache-2.0", ci_provider: "github"}[name];
  }
  for (const name of ["backend_name", "display_name", "vendor", "description"]) {
    $(`${name}-help`).textContent = catalog.help[name];
  }
  $("questions").addEventListener("input", (event) => {
    if (event.target.type === "text") state.touched.add(event.target.id);
    update();
  });
  for (const name of Object.keys(catalog.choices)) $(name).addEventListener("change", update);
  $("questions").addEventListener("submit", (event) => event.preventDefault());
  for (const [button, picked] of [["every", true], ["none", false]]) {
    $(button).addEventListener("click", () => {
      for (const box of document.querySelectorAll("input[name=features]")) box.checked = picked;
      update();
    });
  }
  $("copy").addEventListener("click", () => copyCommand());
  $("download").addEventListener("click", () => {
    const url = URL.createObjectURL(new Blob([answersFile(answersGiven())], {type: "application/yaml"}));
    make("a", {href: url, download: "answers.yml"}).click();
    URL.revokeObjectURL(url);
  });
  update();
}

// Without a clipboard the command is selected, to be copied by hand.
async function copyCommand() {
  try {
    await navigator.clipboard.writeText($("command").textContent);
    $("said").textContent = "Copied.";
  } catch {
    getSelection().selectAllChildren($("command"));
    $("said").textContent = "Selected: copy it with the keyboard.";
  }
}

start();
