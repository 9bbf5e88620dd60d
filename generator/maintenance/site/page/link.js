// The choices in the address bar: a link or a reload restores all of them.

// Writes the choices even if they are invalid, so that a wrong name is kept, too.
function writeLink(answers) {
  const kept = different(answers);
  // Features that are only required by others are not among the choices.
  if (kept.features) kept.features = checked("features");
  if (state.chosen !== README) kept.file = state.chosen;
  const pairs = Object.entries(kept).map(([name, value]) => [name, String(value)]);
  history.replaceState(null, "", `#${new URLSearchParams(pairs)}`);
}

// Sets every field; what the link does not contain, and unknown names and values, get the default.
function readLink() {
  const link = new URLSearchParams(location.hash.slice(1));
  state.touched = new Set([...TEXTS, "device"].filter((name) => link.has(name)));
  for (const name of state.touched) $(name).value = link.get(name);
  const asked = link.get("preset");
  const preset = Object.hasOwn(PRESETS, asked) ? asked : standard("preset");
  const features = link.get("features")?.split(",") ?? PRESETS[preset] ?? standard("features");
  for (const box of fields("features")) box.checked = features.includes(box.value);
  for (const name of LISTS) {
    const choices = Object.values(catalog.questions[name].choices);
    $(name).value = choices.includes(link.get(name)) ? link.get(name) : standard(name, {preset: "custom", features});
  }
  const dtypes = link.get("dtypes")?.split(",") ?? standard("dtypes");
  for (const box of fields("dtypes")) box.checked = box.disabled || dtypes.includes(box.value);
  state.chosen = link.get("file") ?? README;
}
