// The atlas is searched as you type, cut down to what its buttons ask for, and sorted by the head of a column.
// Types whose layers are all alike are folded below a head for each kind, until one of these asks for them.
for (const atlas of document.querySelectorAll("[data-atlas][data-find]")) {
  const table = atlas.querySelector("table"), [first, ...groups] = table.tBodies;
  const rows = [...table.querySelectorAll("tbody tr:not(.at-group)")], home = new Map(rows.map(row => [row, row.parentElement]));
  const text = new Map(rows.map(row => [row, [...row.querySelectorAll("summary, p, td")].map(each => each.textContent).concat(row.querySelector("[aria-label]").ariaLabel).join(" ").toLowerCase()]));
  const find = Object.assign(document.createElement("input"), { type: "search", className: "at-find", placeholder: atlas.dataset.find });
  const said = Object.assign(document.createElement("p"), { role: "status", className: "at-said" });
  find.setAttribute("aria-label", atlas.dataset.find);
  const chips = atlas.querySelector(".at-chips"), buttons = [...chips.children], open = new Set();
  let sorted = false;
  const show = () => {
    const words = find.value.toLowerCase().split(/\s+/), asked = buttons.filter(each => each.ariaPressed === "true");
    const all = !find.value.trim() && !asked.length && !sorted, found = new Set();
    for (const row of rows) {
      const fits = words.every(word => text.get(row).includes(word)) && asked.every(each => row.dataset.has.split(" ").includes(each.dataset.has));
      if (fits) found.add(row);
      row.hidden = !fits || all && groups.includes(home.get(row)) && !open.has(home.get(row));
    }
    for (const group of groups) {
      group.rows[0].hidden = sorted || ![...group.rows].some(row => found.has(row));
      group.querySelector("button").ariaExpanded = !all || open.has(group);
      group.querySelector("button").disabled = !all;
    }
    said.textContent = found.size === rows.length ? "" : found.size ? `${found.size} / ${rows.length}` : atlas.dataset.none;
  };
  for (const group of groups) {
    const head = group.rows[0].cells[0], button = Object.assign(document.createElement("button"), { type: "button" });
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => { open.delete(group) || open.add(group); show(); });
  }
  find.addEventListener("input", show);
  for (const each of buttons)
    each.addEventListener("click", () => { each.ariaPressed = each.ariaPressed !== "true"; show(); });
  chips.hidden = false;
  chips.before(find);
  chips.after(said);
  const value = (row, n) => row.cells[n].dataset.is ?? row.cells[n].textContent;
  for (const [n, head] of [...table.tHead.rows[0].cells].entries()) {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: head.textContent });
    head.replaceChildren(button);
    button.addEventListener("click", () => { // up, down, and back to the groups
      const next = { ascending: "descending", descending: "" }[head.ariaSort] ?? "ascending", up = next === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      sorted = next !== "";
      if (sorted) {
        head.setAttribute("aria-sort", next);
        first.append(...[...rows].sort((a, b) => value(a, n).localeCompare(value(b, n), "en", { numeric: true }) * (up ? 1 : -1)));
      } else for (const row of rows) home.get(row).append(row);
      show();
    });
  }
  show();
}
