// What a class thinks: how many have voted, and, once revealed, what. It asks the kernel again while it is seen.

const EVERY = 2000;   // ms

function node(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

/** One count as a number and a bar; nothing where too few have voted. */
function bar(count, most) {
  const cell = node("td", { className: "order-count" });
  if (count === null) return cell;
  const length = node("span", { className: "order-bar" });
  length.style.width = `${most ? (8 * count) / most : 0}em`;
  cell.append(length, ` ${count}`);
  return cell;
}

function render({ model, el }) {
  const number = node("p", { className: "order-votes" });
  number.setAttribute("role", "status");
  const table = node("table"), press = node("button", { type: "button", className: "order-commit" });
  const fill = node("button", { type: "button", className: "order-open", textContent: "Fill the screen" });
  const { question, asked } = model.get("shown");
  const card = node("div", { className: "order-card order-room" }, node("b", { textContent: `Votes on ${question}` }),
    node("p", { className: "order-asked", textContent: asked }), number, table, node("div", { className: "order-row" }, press, fill));
  el.append(card);
  fill.addEventListener("click", () => document.fullscreenElement ? document.exitFullscreen() : card.requestFullscreen());
  const show = () => {
    const { votes, rows, open, ignored, problem, fewest } = model.get("shown");
    const said = problem || `First vote: ${votes[0]}. Second vote: ${votes[1]}.`
      + (ignored ? ` Files that are no votes: ${ignored}.` : "")
      + (open && !rows.length ? ` Counts are shown from ${fewest} votes on.` : "");
    if (number.textContent !== said) number.textContent = said;   // or a screen reader says it again and again
    press.textContent = open ? "Hide the counts" : "Reveal the counts";
    const most = Math.max(1, ...rows.flatMap((row) => [row[1] ?? 0, row[2] ?? 0]));
    table.hidden = !rows.length;
    table.replaceChildren(
      node("tr", {}, ...["Answer", "First", "Second"].map((text) => node("th", { textContent: text, scope: "col" }))),
      ...rows.map(([words, first, second, right]) => node("tr", {},
        node("th", { scope: "row", textContent: right ? `${words} ✔` : words }), bar(first, most), bar(second, most))));
  };
  press.addEventListener("click", () => model.send({ open: !model.get("shown").open }));
  model.on("change:shown", show);
  show();
  const filled = () => { fill.textContent = document.fullscreenElement === card ? "Back to the notebook" : "Fill the screen"; };
  document.addEventListener("fullscreenchange", filled);
  const timer = setInterval(() => { if (el.offsetParent !== null && !document.hidden) model.send({}); }, EVERY);
  return () => {
    clearInterval(timer);
    document.removeEventListener("fullscreenchange", filled);
    model.off("change:shown", show);
  };
}

export default { render };
