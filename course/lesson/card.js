// A prediction: the card that asks ("ask"), and the card that tells what was measured ("tell").
// Nothing that has the focus is ever disabled, and after a commitment the next cell is selected: Shift+Enter goes on.

const NS = "http://www.w3.org/2000/svg";

let texts = {};   // what the card itself says, in the reader's language; in English it is empty
const say = (text) => texts[text] ?? text;

function node(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

/** The next cell that is seen, in JupyterLab and Notebook 7; nothing elsewhere. */
function nextCell(el) {
  let cell = el.closest(".jp-Cell")?.nextElementSibling;
  while (cell && (cell.offsetParent === null || !cell.classList.contains("jp-Cell"))) cell = cell.nextElementSibling;
  return cell;
}

// ---- a curve to draw ----
const WIDTH = globalThis.innerWidth < 500 ? 380 : 640, HEIGHT = 300; // on a phone it is drawn smaller, but not its words
const AREA = { left: 74, top: 14, right: WIDTH - 20, bottom: HEIGHT - 56 };
const STEPS = { ArrowUp: 0.02, ArrowDown: -0.02, PageUp: 0.1, PageDown: -0.1, Home: -1, End: 1 };
const clamp = (v, lo, hi) => Math.max(lo, Math.min(hi, v));
const short = (v) => String(+(+v).toPrecision(3)).replace("-", "−");

/** Round numbers from lo to hi, about five of them; zero is one if it lies between. */
function ticks(lo, hi) {
  const rough = (hi - lo) / 5, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((k) => k * power).find((k) => k >= rough * 0.999);
  const found = [];
  for (let k = Math.ceil(lo / step - 1e-9); k * step <= hi + step * 1e-9; k++) found.push(k * step);
  return found;
}

function sketch(asked, values, onChange, measured) {
  const [lo, hi] = asked.ylim, { x } = asked;
  const draw = (parent, tag, attributes, text) => {
    const made = document.createElementNS(NS, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  };
  const svg = document.createElementNS(NS, "svg");
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  svg.setAttribute("class", "order-sketch");
  svg.setAttribute("role", "group");
  svg.setAttribute("aria-label", `${asked.ylabel} over ${asked.xlabel}`);
  const toX = (n) => AREA.left + (AREA.right - AREA.left) * (n + 0.5) / x.length;
  const toY = (v) => AREA.bottom - (AREA.bottom - AREA.top) * (clamp(v, lo, hi) - lo) / (hi - lo);
  for (const v of ticks(lo, hi)) {
    const zero = Math.abs(v) < 1e-12;
    draw(svg, "path", { d: `M${AREA.left} ${toY(v)}H${AREA.right}`, class: zero ? "order-zero" : "order-grid" });
    draw(svg, "text", { x: AREA.left - 10, y: toY(v) + 5, "text-anchor": "end" }, short(v));
  }
  draw(svg, "path", { d: `M${AREA.left} ${AREA.top}V${AREA.bottom}` });
  const crowd = 9 * x.length * Math.max(...x.map((v) => short(v).length)) > AREA.right - AREA.left; // each second one, then
  x.forEach((v, n) => crowd && n % 2 === x.length % 2 || draw(svg, "text", { x: toX(n), y: AREA.bottom + 22, "text-anchor": "middle" },
    Number.isInteger(v) ? String(v) : short(v)));
  draw(svg, "text", { x: (AREA.left + AREA.right) / 2, y: HEIGHT - 8, "text-anchor": "middle" }, asked.xlabel);
  draw(svg, "text", { transform: `translate(18 ${(AREA.top + AREA.bottom) / 2}) rotate(-90)`,
    "text-anchor": "middle" }, asked.ylabel);
  const path = (points) => points.map((v, n) => `${toX(n)},${toY(v)}`).join(" ");
  if (measured) {
    draw(svg, "polyline", { class: "order-measured", points: path(measured) });
    measured.forEach((v, n) => draw(svg, "circle", { cx: toX(n), cy: toY(v), r: 5, class: "order-measured-dot" }));
  }
  const line = draw(svg, "polyline", { class: "order-yours" });
  const handles = values ? x.map((v, n) => draw(svg, "circle", { cx: toX(n), r: onChange ? 9 : 5,
    class: "order-handle", ...(onChange && { tabindex: 0, role: "slider", "aria-label": `${asked.ylabel} at ${v}`,
      "aria-orientation": "vertical", "aria-valuemin": lo, "aria-valuemax": hi }) })) : [];
  const show = () => {
    if (!values) return;
    line.setAttribute("points", path(values));
    handles.forEach((handle, n) => {
      handle.setAttribute("cy", toY(values[n]));
      handle.setAttribute("aria-valuenow", values[n]);
      handle.setAttribute("aria-valuetext", short(values[n]));
    });
  };
  show();
  if (!onChange) return svg;
  const set = (n, value) => {
    values = values.map((old, i) => (i === n ? +clamp(value, lo, hi).toPrecision(6) : old));
    if (onChange(values)) show();
  };
  handles.forEach((handle, n) => handle.addEventListener("keydown", (event) => {
    if (STEPS[event.key] === undefined) return;
    event.preventDefault();
    set(n, values[n] + STEPS[event.key] * (hi - lo));
  }));
  let drawing = false;   // one stroke of the mouse draws all points that it passes
  const stroke = (event) => {
    const box = svg.getBoundingClientRect(), scale = WIDTH / box.width;
    const px = (event.clientX - box.left) * scale, py = (event.clientY - box.top) * scale;
    const n = Math.floor((px - AREA.left) / (AREA.right - AREA.left) * x.length);
    if (n >= 0 && n < x.length) set(n, lo + (hi - lo) * (AREA.bottom - py) / (AREA.bottom - AREA.top));
  };
  svg.addEventListener("pointerdown", (event) => {
    event.preventDefault();   // or the ticks are selected as text
    drawing = true;
    svg.setPointerCapture(event.pointerId);
    stroke(event);
  });
  svg.addEventListener("pointermove", (event) => { if (drawing) stroke(event); });
  for (const name of ["pointerup", "pointercancel"]) svg.addEventListener(name, () => { drawing = false; });
  return svg;
}

// ---- what is answered with: each gives the answer that is committed, or what is missing ----
const INPUTS = {
  choice(asked, said, _changed, name) {
    const rows = asked.choices.map(([key, words]) => {
      const radio = node("input", { type: "radio", name, value: key, checked: said === key });
      return { key, radio, label: node("label", {}, radio, node("span", { textContent: words })) };
    });
    return {
      nodes: rows.map((row) => row.label),
      answer: () => rows.find((row) => row.radio.checked)?.key ?? null,
      missing: say("Choose one first."),
      close: (chosen) => rows.forEach((row) => {
        row.radio.checked = row.key === chosen;
        row.radio.setAttribute("aria-disabled", "true");
        row.label.classList.toggle("order-chosen", row.key === chosen);
      }),
      mark: (told) => rows.forEach((row) => {
        if (row.key === told.measured) row.label.dataset.mark = "✔";
        else if (row.key === told.said) row.label.dataset.mark = "✘";
      }),
    };
  },
  number(asked, said) {
    const input = node("input", { type: "number", step: "any", value: said ?? "", ariaLabel: say("your number") });
    return {
      nodes: [node("label", { className: "order-number" }, `${say("Your number")} `, node("span", {}, input, ` ${asked.unit}`))],
      answer: () => (input.value.trim() === "" || !Number.isFinite(+input.value) ? null : +input.value),
      missing: say("Type a number first."),
      close: (value) => { input.value = value; input.readOnly = true; },
      mark() {},
    };
  },
  sketch(asked, said, changed) {
    const middle = asked.ylim[0] < 0 && asked.ylim[1] > 0 ? 0 : (asked.ylim[0] + asked.ylim[1]) / 2;
    let values = said ?? asked.x.map(() => middle), drawn = Boolean(said), open = true;
    const svg = sketch(asked, values, (next) => {
      if (!open) return false;
      values = next;
      drawn = true;
      changed();
      return true;
    });
    return {
      nodes: [node("div", { textContent: say("Draw with the mouse or a finger, or move the points with the arrow keys.") }), svg],
      answer: () => (drawn ? values : null),
      missing: say("Draw your curve first."),
      close: () => { open = false; svg.classList.add("order-closed"); },
      mark() {},
    };
  },
};

function ask(model, el) {
  const asked = model.get("asked");
  const status = node("div", { className: "order-status" });
  status.setAttribute("role", "status");
  const input = INPUTS[asked.kind](asked, model.get("said"), () => { status.textContent = ""; },
    `order-${Math.random().toString(36).slice(2)}`);
  const commit = node("button", { type: "button", textContent: say("Commit"), className: "order-commit" });
  const set = node("fieldset", { className: "order-card" });
  const legend = node("legend");
  legend.innerHTML = `<b>${say("Predict.")}</b> ${asked.question}`;
  const everything = node("button", { type: "button", className: "order-open", textContent: say("Just reading? Open every answer") });
  set.append(legend, ...input.nodes, node("div", { className: "order-row" }, commit, everything), status);
  el.append(set);
  let closed = false;

  const goOn = () => nextCell(el)?.focus();   // its focusin makes it the active cell
  const press = () => {
    if (closed) { goOn(); return; }
    const answer = input.answer();
    if (answer === null) { status.textContent = input.missing; return; }
    close(answer);
    // The press carries the answer: a change of the model is held back while the kernel is busy, and could come late.
    model.send({ commit: answer });
    status.textContent = nextCell(el) ? say("Noted. Shift+Enter runs the next cell.") : say("Noted. Now run the next cell.");
    goOn();
  };
  const close = (answer) => {
    closed = true;
    input.close(answer);
    commit.setAttribute("aria-disabled", "true");
    set.classList.add("order-committed");
  };
  const show = () => {
    const told = model.get("told");
    if (told?.measured === undefined) return;
    if (!closed && told.said !== null) close(told.said);
    input.mark(told);
    status.textContent = told.right === null ? say("Measured below.") : told.right ? say("✔ Right. Measured below.") : say("✘ Measured below.");
  };
  commit.addEventListener("click", press);
  everything.addEventListener("click", () => openAll(el));
  // Notebook 7 takes keys in the capture phase at the document; only a capturing listener at the window comes before
  // it. What the browser itself does with an arrow key, the next radio button, still happens.
  const keys = (event) => {
    if (!set.contains(event.target) || event.ctrlKey || event.metaKey || event.altKey || event.key === "Tab") return;
    if (event.shiftKey && event.key !== "Enter") return;
    if (STEPS[event.key] === undefined || !event.target.closest("svg")) event.stopPropagation();
    if (event.key === "Enter" && event.shiftKey) {   // never stuck: without an answer, too, it goes on
      event.preventDefault();
      if (input.answer() === null) goOn();
      else press();
    } else if (event.key === "Enter" && !event.target.closest("button")) {
      event.preventDefault();
      press();
    }
  };
  window.addEventListener("keydown", keys, true);
  model.on("change:told", show);
  if (model.get("earlier")) status.textContent = say("You chose this before. Commit again, or run the next cell.");
  else if (model.get("said") !== null) close(model.get("said"));   // reopened
  show();
  return () => {
    model.off("change:told", show);
    window.removeEventListener("keydown", keys, true);
  };
}

// ---- what was folded until now ----
/** Open the folded code of this cell, and what is folded in the text below it, up to the next code cell. */
function unfold(el) {
  let cell = el.closest(".jp-Cell");
  cell?.querySelector(".jp-Cell-inputWrapper .jp-Placeholder-content")?.click();
  for (cell = cell?.nextElementSibling; cell && !cell.classList.contains("jp-CodeCell"); cell = cell.nextElementSibling)
    cell.querySelectorAll("details").forEach((one) => { one.open = true; });
}

/** Open all that is folded in the notebook, for a reader who does not want to predict. */
function openAll(el) {
  const notebook = el.closest(".jp-Notebook, article") ?? document;
  notebook.querySelectorAll(".jp-Placeholder-content").forEach((one) => one.click());
  notebook.querySelectorAll("details").forEach((one) => { one.open = true; });
}

/** Why did you think so? One click, or a few words; nothing is graded. It leaves the answer as a line. */
function askWhy(reasons, then) {
  const box = node("fieldset", { className: "order-why" });
  const done = (reason) => {
    box.replaceWith(node("p", { className: "order-reason", textContent: `${say("You thought so because:")} ${reason}` }));
    then(reason);
  };
  const pick = (reason) => node("button", { type: "button", textContent: reason, onclick: () => done(reason) });
  const own = node("input", { type: "text", maxLength: 300, ariaLabel: say("in your own words"),
    placeholder: say("in your own words") });
  const said = () => { if (own.value.trim()) done(own.value.trim()); else own.focus(); };
  for (const kind of ["keydown", "keyup", "keypress"])   // JupyterLab has shortcuts of single letters
    own.addEventListener(kind, (event) => {
      event.stopPropagation();
      if (kind === "keydown" && event.key === "Enter") { event.preventDefault(); said(); }
    });
  box.append(node("legend", { textContent: say("Why did you think so?") }), ...reasons.map(([reason]) => pick(reason)),
    pick(say("I guessed.")), node("div", { className: "order-row" }, own,
      node("button", { type: "button", textContent: say("That is why"), onclick: said })));
  return box;
}

function tell(model, el) {
  const told = model.get("told"), asked = model.get("asked");
  const card = node("div", { className: "order-card order-told" });
  card.setAttribute("role", "status");
  const line = (className, html) => {
    const made = node("p", { className });
    made.innerHTML = html;
    card.append(made);
  };
  if (told.verdict) line(told.right ? "order-right" : "order-wrong", `${told.right ? "✔" : "✘"} ${told.verdict}`);
  line("order-measured-words", `<b>${say("Measured:")}</b> ${told.words}`);
  if (asked.kind === "sketch") card.append(sketch(asked, told.said, null, told.measured),
    node("div", { className: "order-key", textContent: told.said ? say("dashed: yours; full: measured") : "" }));
  const explain = (refuted) => {
    if (refuted) line("order-belief", refuted);
    if (told.meaning) line("order-meaning", told.meaning);
    if (told.others?.length) {
      const list = node("ul");
      for (const [words, why] of told.others) {
        const item = node("li");
        item.innerHTML = `<i>${words}</i> ${why}`;
        list.append(item);
      }
      card.append(node("details", {}, node("summary", { textContent: say("And the other answers?") }), list));
    }
  };
  const refute = (reason) => (told.reasons ?? []).find(([given]) => given === reason)?.[1] ?? told.belief;
  const asks = told.right === false && told.belief && !told.reason;
  if (asks) card.append(askWhy(told.reasons ?? [], (reason) => {
    model.send({ reason });
    explain(refute(reason));
    unfold(el);
    nextCell(el)?.focus();   // Shift+Enter goes on, and does not run this cell again
  }));
  else explain(told.reason ? refute(told.reason) : told.belief);
  el.append(card);
  let alive = !asks;   // what explains it waits for the reason
  const whenThere = () => {
    if (!alive) return;
    if (!el.isConnected) requestAnimationFrame(whenThere);
    else unfold(el);
  };
  whenThere();
  return () => { alive = false; };
}

export default {
  render({ model, el }) {
    texts = model.get("texts") ?? {};
    return (model.get("role") === "tell" ? tell : ask)(model, el);
  },
};
