/* The atlas is searched as you type, cut down to what its buttons ask for, and sorted by the head of a column. */
for (const atlas of document.querySelectorAll("[data-atlas]")) {
  const table = atlas.querySelector("table"), body = table.tBodies[0], rows = [...body.rows];
  const text = new Map(rows.map(row => [row, `${row.textContent} ${row.querySelector("[aria-label]").ariaLabel}`.toLowerCase()]));
  const find = Object.assign(document.createElement("input"), { type: "search", className: "at-find", placeholder: atlas.dataset.find });
  const said = Object.assign(document.createElement("p"), { role: "status" });
  find.setAttribute("aria-label", atlas.dataset.find);
  const chips = atlas.querySelector(".at-chips"), buttons = [...chips.children];
  const show = () => {
    const words = find.value.toLowerCase().split(/\s+/), asked = buttons.filter(each => each.ariaPressed === "true");
    for (const row of rows)
      row.hidden = !(words.every(word => text.get(row).includes(word)) && asked.every(each => row.dataset.has.split(" ").includes(each.dataset.has)));
    const left = rows.filter(row => !row.hidden).length;
    said.textContent = left ? `${left} / ${rows.length}` : atlas.dataset.none;
  };
  find.addEventListener("input", show);
  for (const each of buttons)
    each.addEventListener("click", () => { each.ariaPressed = each.ariaPressed !== "true"; show(); });
  chips.hidden = false;
  chips.before(find);
  table.before(said);
  const value = (row, n) => row.cells[n].dataset.is ?? row.cells[n].textContent;
  for (const [n, head] of [...table.tHead.rows[0].cells].entries()) {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: head.textContent });
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const up = head.ariaSort !== "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      rows.sort((a, b) => value(a, n).localeCompare(value(b, n), "en", { numeric: true }) * (up ? 1 : -1));
      body.append(...rows);
    });
  }
}
