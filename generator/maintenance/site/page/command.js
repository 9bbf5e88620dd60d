// The answers as commands and as a file.

// The answers that differ from copier's defaults. With features given, the preset is custom.
function different(answers) {
  const names = Object.keys(catalog.questions);
  const kept = Object.fromEntries(names
    .filter((name) => name === "backend_name" || String(answers[name]) !== String(standard(name, answers)))
    .map((name) => [name, answers[name]]));
  if (answers.preset !== "custom") delete kept.features;
  else {
    delete kept.preset;
    kept.features = answers.features;
  }
  return kept;
}

function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
}

// Commands that render what is shown, in this version.
function commands(answers) {
  const given = Object.entries(different(answers)).map(([name, value]) => {
    const text = Array.isArray(value) ? `[${value.join(", ")}]` : value;
    return `-d ${quoted(`${name}=${text}`)}`;
  }).join(" ");
  const [from, version] = [quoted(source), quoted(commit)];
  const folder = interpreter(answers).globals("distribution");
  return {
    command: `copier copy --vcs-ref ${version} --defaults ${given} ${from} ${folder}`,
    new: `torchsmith new ${folder} --template ${from} --to ${version} --defaults ${given}`,
  };
}

// Copier reads YAML, of which JSON is a part.
function answersFile(answers) {
  return Object.entries(different(answers)).map(([name, value]) => `${name}: ${Jinja.json(value, false)}\n`).join("");
}
