// The tree of files, after WAI-ARIA's pattern of a tree view: one entry is in the tab order, arrow keys move from it.

// The paths that contain every word of the filter.
function filtered(paths, filter) {
  const words = filter.toLowerCase().split(/\s+/);
  return paths.filter((path) => words.every((word) => path.toLowerCase().includes(word)));
}

// Rebuilds the tree; keyboard focus stays on the same entry.
function showTree() {
  const all = [...state.written.keys()];
  const paths = filtered(all, $("filter").value);
  const root = new Map();
  for (const path of paths) {
    const parts = path.split("/");
    const name = parts.pop();
    let folder = root;
    for (const part of parts) {
      if (!folder.has(part)) folder.set(part, new Map());
      folder = folder.get(part);
    }
    folder.set(name, path);
  }
  const focused = document.activeElement?.dataset?.path;
  $("tree").replaceChildren(...branch(root, ""));
  $("count").textContent = paths.length < all.length ? `${paths.length} of ${all.length} files` : `${all.length} files`;
  const stop = entry(state.stop) ?? $("tree").firstElementChild;
  if (stop) stop.tabIndex = 0;
  if (focused) entry(focused)?.focus({preventScroll: true});
}

function branch(folder, at) {
  const entries = [...folder].sort(([one, first], [other, second]) =>
    (typeof first === "string") - (typeof second === "string") || (one < other ? -1 : 1));
  return entries.map(([name, inside]) => {
    const path = at ? `${at}/${name}` : name;
    const item = make("li", {role: "treeitem", tabIndex: -1, ariaLabel: name});
    item.dataset.path = path;
    const owner = state.owners.get(path);
    const label = make("span", {className: "name", textContent: name});
    if (owner && owner !== state.owners.get(at)) {
      label.append(make("span", {className: "owner", textContent: owner}));
      item.ariaLabel += `, ${owner}`;
    }
    item.append(label);
    if (typeof inside === "string") {
      item.ariaSelected = String(path === state.chosen);
    } else {
      label.prepend(make("span", {className: "mark"}));
      item.ariaExpanded = String(state.opened.has(path) || $("filter").value !== "");
      item.append(make("ul", {role: "group"}, ...branch(inside, path)));
    }
    return item;
  });
}

function entry(path) {
  return $("tree").querySelector(`[data-path="${CSS.escape(path)}"]`);
}

function expand(item, open) {
  item.ariaExpanded = String(open);
  if (open) state.opened.add(item.dataset.path);
  else state.opened.delete(item.dataset.path);
}

function focusOn(item) {
  for (const other of $("tree").querySelectorAll("[tabindex='0']")) other.tabIndex = -1;
  item.tabIndex = 0;
  state.stop = item.dataset.path;
  item.focus();
}

// Opens or closes a folder, shows a file.
function activate(item) {
  focusOn(item);
  if (item.ariaExpanded) expand(item, item.ariaExpanded === "false");
  else choose(item.dataset.path);
}

// The entry that a key moves to, if any.
function destination(key, item) {
  const seen = [...$("tree").querySelectorAll("[role=treeitem]")]
    .filter((it) => !it.parentElement.closest("[aria-expanded=false]"));
  const at = seen.indexOf(item);
  switch (key) {
    case "ArrowDown": return seen[at + 1];
    case "ArrowUp": return seen[at - 1];
    case "Home": return seen[0];
    case "End": return seen.at(-1);
    case "ArrowRight": return item.ariaExpanded ? seen[at + 1] : undefined;
    case "ArrowLeft": return item.parentElement.closest("[role=treeitem]");
  }
  if (key.length > 1) return undefined;
  const others = [...seen.slice(at + 1), ...seen.slice(0, at)];
  return others.find((it) => it.ariaLabel.toLowerCase().startsWith(key.toLowerCase()));
}

function onTreeKey(event) {
  const item = event.target.closest("[role=treeitem]");
  if (!item || event.ctrlKey || event.altKey || event.metaKey || event.key === "Tab") return;
  if (event.key === "Enter" || event.key === " ") activate(item);
  else if (event.key === "ArrowRight" && item.ariaExpanded === "false") expand(item, true);
  else if (event.key === "ArrowLeft" && item.ariaExpanded === "true") expand(item, false);
  else {
    const next = destination(event.key, item);
    if (!next) return;
    focusOn(next);
  }
  event.preventDefault();
}
