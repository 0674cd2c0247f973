(() => {  // its names are its own: explorers follow in the same page
// Lanes have learned nothing when a deck is printed: their pictures stay. Else a finger moves them, and not the slide.
for (const place of document.querySelectorAll("[data-playground]")) {
  if (new URLSearchParams(location.search).has("print-pdf")) place.replaceWith(...place.childNodes);
  else place.dataset.preventSwipe = "";
  // In large type there is room for the dials in which lanes differ.
  const menus = () => [...place.querySelectorAll(".pg-lane > .pg-row > *")];
  const differ = () => menus().forEach((menu, _, all) => menu.classList.toggle("pg-same",
    all.every(other => other.firstChild.textContent !== menu.firstChild.textContent || other.lastChild.value === menu.lastChild.value)));
  const made = new MutationObserver(() => { if (menus().length) { differ(); made.disconnect(); } });
  made.observe(place, { childList: true, subtree: true });
  place.addEventListener("change", () => setTimeout(differ));
}
// Words without a picture are as large as the slide has room for.
function fit(body, sizes = body.matches("h3 + *") ? [34, 32, 30, 28, 26, 25] : [40, 37, 34, 31, 29, 27, 25]) {
  const vote = body.classList.contains("vote");
  for (const size of sizes) {
    if (vote) body.style.zoom = size / 100; else body.style.fontSize = `${size}px`;
    const room = body.getBoundingClientRect();
    const out = e => {
      const box = e.getBoundingClientRect();
      const wide = box.right > room.right + 1 && !e.matches(".MathJax"); // a formula alone is set smaller
      return box.width && (box.top < room.top - 1 || box.bottom > room.bottom + 1 || wide);
    };
    if (![...body.querySelectorAll("p, li, td, table, pre, button, input, svg, .MathJax_Display > .MathJax")].some(out)) break;
  }
}

// Votes: hands counted by click or letter, numbers typed, a curve drawn. They stay on this machine, until 0 is pressed.
const svg = (tag, attributes, text = "") => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.textContent = text;
  return made;
};
const stored = key => { try { return JSON.parse(localStorage.getItem(`vote ${key}`)) ?? []; } catch { return []; } };
const keep = (key, votes) => { try { localStorage.setItem(`vote ${key}`, JSON.stringify(votes)); } catch { /* not kept */ } drawAll(); };
const painters = [];
const drawAll = () => painters.forEach(paint => paint());
addEventListener("storage", drawAll);  // the speaker's window has counted

/** The numbers of a room as dots on a line; the measured one as a mark. */
function line(place, votes, value) {
  const all = value === undefined ? votes : [...votes, value];
  if (!all.length) return place.replaceChildren();
  let low = Math.min(...all, 0), high = Math.max(...all);
  if (high <= low) high = low + 1;
  const x = v => 30 + 1100 * (v - low) / (high - low), row = {};
  place.replaceChildren(svg("path", { d: "M30 160H1130", stroke: "currentColor", "stroke-width": 2 }),
    ...[low, (low + high) / 2, high].map(v => svg("text", { x: x(v), y: 195, "text-anchor": "middle" }, +v.toPrecision(3))),
    ...votes.map(v => svg("circle", { cx: x(v), cy: 144 - 20 * (row[Math.round(x(v) / 20)] = (row[Math.round(x(v) / 20)] ?? -1) + 1), r: 9, fill: "#62b5ff" })));
}

/** Axes with the curve that the room draws, by `change`, or has drawn; and, beside the answer, the measured one. */
function sheet(drawing, key, change) {
  const { x, xlabel, ylabel, ylim, measured } = JSON.parse(drawing.dataset.axes);
  const at = n => 120 + 1000 * n / (x.length - 1), up = v => 300 - 270 * (v - ylim[0]) / (ylim[1] - ylim[0]);
  const path = values => values.map((v, n) => Number.isFinite(v) ? `${at(n)} ${up(v)}` : "").filter(Boolean).map((p, n) => (n ? "L" : "M") + p).join("");
  const curve = name => svg("path", { class: name, fill: "none", "stroke-width": 5, "stroke-linejoin": "round" });
  const drawn = curve("drawn"), truth = curve("measured");
  drawing.append(svg("rect", { x: 120, y: 30, width: 1000, height: 270 }),
    ...[ylim[0], ylim[0] < 0 && ylim[1] > 0 ? 0 : (ylim[0] + ylim[1]) / 2, ylim[1]].flatMap(v => [svg("path", { d: `M120 ${up(v)}H1120` }),
      svg("text", { x: 108, y: up(v) + 8, "text-anchor": "end" }, `${+v.toPrecision(2)}`.replace("-", "−"))]),
    ...x.map((v, n) => svg("text", { x: at(n), y: 340, "text-anchor": "middle" }, v)),
    svg("text", { x: 1120, y: 380, "text-anchor": "end" }, xlabel), svg("text", { x: 120, y: 4 }, ylabel), drawn, truth);
  if (measured) {
    truth.setAttribute("d", path(measured));
    const side = n => n ? n < measured.length - 1 ? "middle" : "end" : "start"; // no number stands on the axis
    const numbers = measured.map((v, n) => svg("text", { class: "measured", x: at(n) + 5 * !n, y: up(v) + (measured[n - 1] > v && measured[n + 1] > v ? 38 : -20), "text-anchor": side(n) }, v.toFixed(2).replace("-", "−")));
    drawing.append(...measured.map((v, n) => svg("circle", { class: "measured", cx: at(n), cy: up(v), r: 9 })),
      ...numbers.filter((_, n) => n % (numbers.length - 1) === 0
        || numbers.length < 12 && numbers[n - 1].textContent + numbers[n + 1].textContent !== numbers[n].textContent.repeat(2)));
  }
  const pencil = svg("path", { class: "pencil", d: "M580 190l10-38 72-72 28 28-72 72z m10-38 28 28" });  // here the room draws
  if (change) drawing.append(pencil);
  painters.push(() => { drawn.setAttribute("d", path(stored(key))); pencil.style.display = stored(key).length ? "none" : ""; });
  if (change) drawing.addEventListener("pointermove", event => {
    if (!event.buttons) return;
    const p = new DOMPoint(event.clientX, event.clientY).matrixTransform(drawing.getScreenCTM().inverse());
    const votes = stored(key), n = Math.round((p.x - 120) / 1000 * (x.length - 1));
    if (n < 0 || n >= x.length) return;
    votes[n] = Math.min(ylim[1], Math.max(ylim[0], ylim[0] + (300 - p.y) / 270 * (ylim[1] - ylim[0])));
    change(votes);
  });
}

for (const drawing of document.querySelectorAll("svg[data-vote]")) sheet(drawing, drawing.dataset.vote);
for (const place of document.querySelectorAll("div[data-vote]")) {
  const key = place.dataset.vote, kind = place.dataset.kind;
  if (kind === "choice") {
    const buttons = [...place.querySelectorAll("button")];
    const add = (n, by) => {
      const votes = buttons.map((_, m) => stored(key)[m] ?? 0);
      votes[n] = Math.max(0, votes[n] + by);
      keep(key, votes);
    };
    buttons.forEach((button, n) => button.addEventListener("click", event => add(n, event.shiftKey ? -1 : 1)));
    place.press = event => {
      const n = event.key.length === 1 ? event.key.toLowerCase().charCodeAt(0) - 97 : -1;
      if (event.key === "0") keep(key, []);
      else if (buttons[n]) add(n, event.shiftKey ? -1 : 1);
      else return false;
      return true;
    };
    painters.push(() => {
      const votes = stored(key), all = votes.reduce((a, b) => a + b, 0);
      buttons.forEach((button, n) => {
        button.querySelector("output").textContent = all ? votes[n] ?? 0 : "";
        button.style.setProperty("--share", all ? `${100 * (votes[n] ?? 0) / all}%` : "0%");
      });
    });
  } else if (kind === "number") {
    const input = place.querySelector("input"), drawing = place.querySelector("svg");
    input.value = stored(key).join(" ");
    input.addEventListener("input", () =>
      keep(key, input.value.split(/[\s;]+/).map(text => parseFloat(text.replace(",", "."))).filter(Number.isFinite)));
    painters.push(() => line(drawing, stored(key)));
  } else {
    sheet(place.querySelector("svg"), key, values => keep(key, values));
  }
  place.dataset.preventSwipe = "";
}
for (const place of document.querySelectorAll("ol.told")) {
  painters.push(() => {
    const votes = stored(place.dataset.vote), all = votes.some(Boolean);
    place.querySelectorAll("output").forEach((each, n) => { each.textContent = all ? votes[n] ?? 0 : ""; });
  });
}
for (const place of document.querySelectorAll("p.told")) {
  painters.push(() => {
    const votes = stored(place.dataset.vote), value = parseFloat(place.dataset.value);
    const choices = document.querySelectorAll(`div[data-vote="${place.dataset.vote}"] button`);
    if (!votes.some(Boolean)) return place.replaceChildren();
    const parts = choices.length ? [...choices].map((_, n) => [`${String.fromCharCode(65 + n)} ${votes[n] ?? 0}`, n === value])
      : [...votes].sort((a, b) => a - b).map(v => [`${v}`, false]);
    place.replaceChildren(...parts.map(([text, right]) => {
      const part = document.createElement(right ? "b" : "span");
      part.textContent = right ? `${text} ✔` : text;
      return part;
    }));
  });
}
drawAll();
addEventListener("keydown", event => {
  if (event.target.closest("input") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (document.querySelector(".present [data-vote]")?.press?.(event)) event.stopImmediatePropagation();
}, true);
// Formulas are measured when they are set, so this happens while every slide is laid out; then the show begins.
window.MathJax = {
  jax: ["input/TeX", "output/HTML-CSS"],
  extensions: ["tex2jax.js"],
  messageStyle: "none",
  showMathMenu: false,
  tex2jax: { inlineMath: [["$", "$"]], displayMath: [["$$", "$$"]], skipTags: ["script", "style", "pre", "code"],
             ignoreClass: "notes" },
  "HTML-CSS": { availableFonts: [], imageFont: null, preferredFont: null, webFont: "STIX-Web", undefinedFamily: "STIXGeneral, Course, serif",
                styles: { "@font-face": { "font-family": "MathJax_Blank", src: "local('none')" } } },
  AuthorInit() {
    MathJax.Hub.Register.StartupHook("End", () => {
      for (const body of document.querySelectorAll(".body:not(.vote, :has(figure))")) fit(body);
      for (const body of document.querySelectorAll(".body.vote")) {
        const sizes = body.querySelector("img, input") ? [100, 94, 88, 82, 76, 70] : [122, 116, 110, 105, 100, 94, 88, 82];
        fit(body, sizes);
        const dots = body.querySelector("[data-kind=number] svg");
        if (!dots) continue;
        dots.append(svg("g", {}));  // there is room for them, too
        fit(body, sizes.filter(size => size <= 100 * body.style.zoom));
      }
      drawAll();
      for (const formula of document.querySelectorAll(".MathJax_Display")) {  // one that is too wide is set smaller
        const share = formula.clientWidth / formula.firstElementChild.getBoundingClientRect().width;
        if (share < 1) formula.style.setProperty("font-size", `${Math.floor(99 * share)}%`, "important");
      }
      document.body.classList.remove("setting");
      Reveal.initialize({ width: 1280, height: 720, margin: 0, center: false, display: "flex", hash: true,
                          slideNumber: "c/t", controls: false, transition: "none", backgroundTransition: "none", pdfSeparateFragments: false,
                          plugins: [RevealNotes] });
    });
  },
};
})();
