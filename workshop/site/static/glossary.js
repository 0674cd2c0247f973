// The glossary is searched as you type; a letter without a term is gone, too.
for (const letters of document.querySelectorAll("[data-term]")) {
  const rows = [...document.querySelectorAll("tr:has([id])")].filter(row => !row.querySelector(".course-letter"));
  const heads = [...document.querySelectorAll("tr:has(.course-letter)")];
  const said = Object.assign(document.createElement("span"), { role: "status" });
  const find = Object.assign(document.createElement("input"), { type: "search", className: "course-find", placeholder: letters.dataset.term });
  find.setAttribute("aria-label", letters.dataset.term);
  find.addEventListener("input", () => {
    const words = find.value.toLowerCase().split(/\s+/);
    for (const row of rows) row.hidden = !words.every(word => row.textContent.toLowerCase().includes(word));
    for (const head of heads) {
      let row = head.nextElementSibling;
      while (row && !heads.includes(row) && row.hidden) row = row.nextElementSibling;
      head.hidden = !row || heads.includes(row);
    }
    said.textContent = rows.some(row => !row.hidden) ? "" : letters.dataset.none;
  });
  letters.before(find, said);
}
