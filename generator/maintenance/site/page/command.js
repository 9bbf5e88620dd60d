// The choices as commands.

function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
}

// Commands that render the choices with this version.
function commands(preset, features) {
  const chosen = preset === CUSTOM ? `features=[${features.join(", ")}]` : `preset=${preset}`;
  const given = `--defaults -d backend_name=${state.name} -d ${quoted(chosen)}`;
  const from = quoted(DATA.source);
  const to = (option) => (DATA.version ? ` ${option} ${quoted(DATA.version)}` : "");
  const folder = named(`torch-${MARKER.dashed}`);
  return {
    new: `torchsmith new ${folder} --template ${from}${to("--to")} ${given}`,
    command: `copier copy${to("--vcs-ref")} ${given} ${from} ${folder}`,
  };
}

// Lines do not break within an option.
function showCommand(element, text) {
  const option = (textContent) => make("span", {className: "option", textContent});
  element.replaceChildren(...text.split(/( )/).map((word) => (word.startsWith("-") ? option(word) : word)));
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
