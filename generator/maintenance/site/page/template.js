// What copier does: renders the template for some answers, checks answers, knows their defaults.

const {catalog, files, source, commit, docs} = DATA;

// Jinja with some answers; computed values are computed on first use.
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

// The content of the answers file.
function recorded(answers) {
  const kept = {...answers, _commit: commit, _src_path: source};
  if (answers.preset !== "custom") delete kept.features;
  return kept;
}

// The files that copier writes, by path; their texts are rendered on access.
function rendered(answers) {
  const jinja = interpreter(answers);
  const patterns = catalog.exclude.map((pattern) => jinja.render(pattern)).join("\n").split("\n").filter(Boolean);
  return files
    .map((file) => ({...file, path: jinja.render(file.path)}))
    .filter(({path}) => !patterns.some((pattern) => matches(pattern, path)))
    .map(({path, content, executable}) => ({
      path,
      executable,
      get text() {
        return typeof content === "string" ? content : jinja.render(content);
      },
    }))
    .sort((one, other) => (one.path < other.path ? -1 : 1));
}

function render(answers) {
  return new Map(rendered(answers).map(({path, text}) => [path, text]));
}

function matches(pattern, path) {
  if (pattern.startsWith("/")) return `/${path}` === pattern || `/${path}`.startsWith(`${pattern}/`);
  return path.split("/").some((part) => part === pattern ||
                              (pattern.startsWith("*") && part.endsWith(pattern.slice(1))));
}

// The errors of the template's checks, by question.
function problems(answers) {
  const jinja = interpreter(answers);
  const judged = ([name, {validator}]) => [name, Jinja.trim(jinja.render(validator))];
  const said = Object.entries(catalog.questions).map(judged);
  return Object.fromEntries(said.filter(([, text]) => text));
}

// The default of a question, which may depend on the other answers.
function standard(name, answers = {}) {
  const {list, default: template} = catalog.questions[name];
  const text = interpreter(answers).render(template);
  return list ? words(text) : text;
}
