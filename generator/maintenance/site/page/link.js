// The choices in the address bar: a link or a reload restores all of them.

// Writes the choices even if they are invalid, so that a wrong name is kept, too.
function writeLink() {
  const {name, preset} = choices();
  const pairs = {name, ...(preset === CUSTOM ? {features: picked().join(",")} : {preset}), file: state.chosen};
  history.replaceState(null, "", `#${new URLSearchParams(pairs)}`);
}

// Missing and unknown values get the default.
function readLink() {
  const link = new URLSearchParams(location.hash.slice(1));
  const preset = Object.hasOwn(PRESETS, link.get("preset")) ? link.get("preset") : "standard";
  $("backend_name").value = link.get("name") ?? DATA.name.default;
  pick(link.get("features")?.split(",") ?? PRESETS[preset].features);
  state.chosen = link.get("file") ?? README;
}
