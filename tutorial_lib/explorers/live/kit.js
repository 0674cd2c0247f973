// What all live explorers share: the store of parameters, the frame loop, controls, drag, keys, words.

const SVG = "http://www.w3.org/2000/svg";
export const TAU = 2 * Math.PI;
export const clamp = (v, lo, hi) => Math.max(lo, Math.min(hi, v));
export const range = n => Array.from({ length: n }, (_, i) => i);
export const minus = text => String(text).replace("-", "−");
export const wrapped = a => a - TAU * Math.round(a / TAU);

// ---- words ----
const dictionary = {};
/** Add texts in the page's language, each under its English text. */
export const learn = more => Object.assign(dictionary, more);
/** A text with its values, in the page's language: "Pair {0} of {1}" is the key. After ‖ comes a note for
 * translators, where one English word has two meanings. */
export function speak(parts, ...values) {
  const key = parts.reduce((so, part, i) => `${so}{${i - 1}}${part}`);
  return (dictionary[key] ?? key.split("‖")[0]).replace(/\{(\d+)\}/g, (_, i) => values[i]);
}
export const list = words => words.join(speak`, `);
/** What a value of a listed parameter is called. */
export const named = (name, value, { parameters }) => parameters[name].texts[parameters[name].values.indexOf(value)];

/** What a picture of these settings shows, for those who cannot see it. */
export const alt = (explorer, params, data) => speak`An explorer, “${explorer.title}”. ${explorer.scene(params, data).description}`;

// ---- elements ----
const SHORT = { sw: "stroke-width", ta: "text-anchor", vc: "dominant-baseline", dash: "stroke-dasharray",
  cap: "stroke-linecap", fw: "font-weight", fs: "font-size", still: "pointer-events" };
const ONE = { vc: "central", still: "none", cap: "round" };
const MORE = { mid: { ta: "middle", vc: 1 }, halo: { class: "lv-halo" }, rim: { stroke: "--paper", sw: 2 } };

/** Set attributes; frequent ones have short names, and "--q" is a colour of live.css. */
export function set(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (MORE[name]) set(node, MORE[name]);
    else node.setAttribute(SHORT[name] ?? name,
      ONE[name] ?? (String(value).startsWith("--") ? `var(${value})` : value));
  }
  return node;
}
function made(node, parent, attributes, text) {
  set(node, attributes);
  if (text !== undefined) write(node, text);
  parent?.append(node);
  return node;
}
const RAW = /((?<=\b[A-Za-z]{1,2})_[ijor]{1,2}\b|\^\([^()]+\))/;
/** A text with x_i as x and a small i below, 10^(2) with a small 2 above. Its signs stay in the text, without a size. */
function write(node, text) {
  const [first, ...rest] = String(text).split(RAW), space = node.namespaceURI, svg_ = space === SVG;
  const put = (tag, words, more) => words
    && node.append(made(document.createElementNS(space, svg_ ? "tspan" : tag), null, more, words));
  node.textContent = first;
  for (let n = 0; n < rest.length; n += 2) {
    const [, sign, small, close] = rest[n].match(/^(_|\^\()(.+?)(\)?)$/), up = sign !== "_";
    put("span", sign, { class: "lv-sign" });
    put(up ? "sup" : "sub", small, svg_ ? { class: "lv-index", dy: up ? "-.5em" : ".3em" } : {});
    put("span", close, { class: "lv-sign" });
    put("span", rest[n + 1], svg_ ? { dy: up ? ".4em" : "-.24em" } : {});
  }
}
export const svg = (parent, tag, attributes = {}, text) =>
  made(document.createElementNS(SVG, tag), parent, attributes, text);
export const html = (parent, tag, attributes = {}, text) =>
  made(document.createElement(tag), parent, attributes, text);
export const say = (node, text) => { if (node.textContent !== text) write(node, text); };

/** An SVG of `width` × `height` with a name, and pens: functions that draw on it. */
export function canvas(parent, width, height, label, more = {}) {
  const pic = svg(parent, "svg",
    { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": label, ...more });
  return [pic, pens(pic)];
}
export const pens = pic => Object.fromEntries(["line", "text", "circle", "path", "rect", "g"]
  .map(tag => [tag, (attributes, words) => svg(pic, tag, attributes, words)]));

// ---- numbers in words, as Python's formats give them ----
/** f"{v:,.2f}" */
export const commas = (v, digits = 0) => v.toFixed(digits).replace(/\B(?=(\d{3})+(?=\.|$))/g, ",");
/** f"{v:.4g}" for numbers below 10,000: a tie goes to the even digit, and very small numbers have an exponent. */
export function general(v, digits) {
  if (v === 0) return "0";
  const [front, power] = v.toExponential(digits - 1).split("e").map(Number), places = Math.max(0, digits - 1 - power);
  if (power < -4) return `${front}e-${String(-power).padStart(2, 0)}`;
  const all = Math.abs(v) * 10 ** places, tie = all % 1 === 0.5 && Math.floor(all) % 2 === 0;
  const text = (tie ? Math.sign(v) * Math.floor(all) / 10 ** places : v).toFixed(places);
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}
/** The colour of the palette for v in −1 … 1, and black or white to write on it. */
export function signed(palette, v) {
  const n = Math.round(clamp((v + 1) / 2, 0, 1) * (palette.length / 6 - 1)), hex = palette.slice(6 * n, 6 * n + 6);
  const [r, g, b] = [0, 2, 4].map(i => parseInt(hex.slice(i, i + 2), 16));
  return { fill: `#${hex}`, ink: 0.3 * r + 0.59 * g + 0.11 * b > 120 ? "#000" : "#fff", rgb: [r, g, b] };
}
export const below = n => [...String(n)].map(i => "₀₁₂₃₄₅₆₇₈₉"[i]).join("");

// ---- scales ----
export const scale = (lo, hi, from, to) => Object.assign(
  v => from + (to - from) * (v - lo) / (hi - lo),
  { back: px => lo + (hi - lo) * (px - from) / (to - from) });
export function ticks(lo, hi, most) {
  let step = 10 ** Math.floor(Math.log10((hi - lo) / most || 1));
  step *= [1, 2, 5, 10].find(m => (hi - lo) / (step * m) <= most) || 10;
  const first = Math.ceil(lo / step - 1e-9);
  return range(Math.floor(hi / step + 1e-9) - first + 1).map(i => (i + first) * step);
}
/** Grid lines at `ys`, numbers at `xs`, the name of the axis below them. */
export function axes(pic, x, y, xs, ys, name, bottom, end = xs.at(-1)) {
  for (const v of ys) {
    svg(pic, "line", { x1: x(xs[0]), x2: x(end), y1: y(v), y2: y(v), stroke: "--line",
      sw: Math.abs(v) < 1e-9 ? 2 : 1 });
    svg(pic, "text", { x: x(xs[0]) - 9, y: y(v), ta: "end", vc: 1 }, minus(+v.toPrecision(3)));
  }
  for (const v of xs) svg(pic, "text", { x: x(v), y: bottom + 17, ta: "middle" }, v);
  svg(pic, "text", { x: (x(xs[0]) + x(end)) / 2, y: bottom + 34, ta: "middle" }, name);
}
export const through = (xs, x, y, f) =>
  "M" + xs.map(v => `${x(v).toFixed(2)} ${y(f(v)).toFixed(2)}`).join("L");

// ---- dials: angles in radians, y upwards ----
const at = (cx, cy, r, a) => `${(cx + r * Math.cos(a)).toFixed(2)} ${(cy - r * Math.sin(a)).toFixed(2)}`;
export function wedge(cx, cy, r, from, to) {
  const turn = clamp(to - from, 1e-3 - TAU, TAU - 1e-3);
  return `M${cx} ${cy}L${at(cx, cy, r, from)}A${r} ${r} 0 ${+(Math.abs(turn) > Math.PI)} ${+(turn < 0)} ${
    at(cx, cy, r, from + turn)}Z`;
}
export function spiral(cx, cy, r0, r1, from, to) {
  const n = Math.max(2, Math.ceil(Math.abs(to - from) / 0.06));
  return "M" + range(n + 1).map(i => at(cx, cy, r0 + (r1 - r0) * i / n, from + (to - from) * i / n)).join("L");
}
export function arrow(x0, y0, x1, y1, size) {
  const length = Math.hypot(x1 - x0, y1 - y0) || 1, ux = (x1 - x0) / length, uy = (y1 - y0) / length;
  const bx = x1 - ux * size, by = y1 - uy * size, w = size * 0.42, f = v => v.toFixed(2);
  return { line: `M${f(x0)} ${f(y0)}L${f(bx + ux)} ${f(by + uy)}`,
    head: `M${f(x1)} ${f(y1)}L${f(bx - uy * w)} ${f(by + ux * w)}L${f(bx + uy * w)} ${f(by - ux * w)}Z` };
}

// ---- pieces of a picture ----
/** A group clipped at x0 and x1. Each widget has its own copy of this code, so only chance keeps ids apart. */
export function clipped(pic, x0, x1, height) {
  const id = `lv${Math.random().toString(36).slice(2)}`;
  svg(svg(svg(pic, "defs"), "clipPath", { id }), "rect", { x: x0, width: x1 - x0, y: -9, height });
  return svg(svg(pic, "g", { "clip-path": `url(#${id})`, still: 1 }), "g");
}
/** A number in a box beside a point: to its right, or to its left if there is no room on the right. */
export function tag(pic, fill) {
  const g = svg(pic, "g", { still: 1 });
  const box = svg(g, "rect", { height: 24, rx: 6, y: -12, fill });
  const text = svg(g, "text", { mid: 1, fill: "--paper", fw: 600, fs: 14 });
  return (x, y, words, right) => {
    const wide = 8.6 * words.length + 5.4 * (words.match(/[\u2e80-\uffef]/g) ?? "").length + 14, left = x + 16 + wide > right ? -16 - wide : 16;
    say(text, words);
    set(text, { x: left + wide / 2 });
    set(box, { x: left, width: wide });
    set(g, { transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` });
  };
}
/** The round handle of a parameter, with its name: a slider for keys, and for a screen reader. */
export function grip(app, pic, colour, name, text, label, words) {
  const g = svg(pic, "g", { class: "lv-grip" });
  svg(g, "circle", { r: 22, fill: "#0000" });
  svg(g, "circle", { r: 17, class: "lv-ring" });
  svg(g, "circle", { r: 13, fill: `--${colour}`, rim: 1 });
  svg(g, "text", { mid: 1, fill: "--paper", fw: 700, fs: 15, still: 1 }, text);
  slider(app, g, name, label, words);
  return g;
}

// ---- pointer and keys ----
export const STEPS = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10,
  Home: -Infinity, End: Infinity };

/** The pointer in the coordinates of an SVG, whatever transform applies around it (a slide's, a zoom). */
export function point(event, node) {
  const root = node.ownerSVGElement || node;
  return new DOMPoint(event.clientX, event.clientY).matrixTransform(root.getScreenCTM().inverse());
}
/** Drag `node`; then the keys move the slider of the parameter `name`. */
export function drag(app, node, name, { down, move, up }) {
  const to = (act, event) => act?.(point(event, node));
  set(node, { "data-drag": name });
  node.addEventListener("pointerdown", event => {
    if (event.button) return;
    event.preventDefault();
    event.stopPropagation(); // or it would swipe the slide
    node.setPointerCapture(event.pointerId);
    app.focus(name);
    app.untip();
    to(down, event);
  });
  node.addEventListener("pointermove", event => { if (node.hasPointerCapture(event.pointerId)) to(move, event); });
  for (const end of ["pointerup", "pointercancel"]) {
    node.addEventListener(end, event => {
      if (!node.hasPointerCapture(event.pointerId)) return;
      up?.();
      app.release(name);
    });
  }
}
/** Drag along one axis: `value(point)` is where the parameter goes. */
export const slide = (app, node, name, value, jump = false) => drag(app, node, name, {
  down: jump ? at => app.hold(name, value(at)) : undefined, move: at => app.hold(name, value(at)) });

/** Keys, and the wheel while the node has the focus, move the parameter; `words()` says its value. */
export function slider(app, node, name, label, words = () => app.params[name]) {
  const step = by => { app.pause(); app.put({ [name]: app.at(name) + by }); };
  set(node, { tabindex: 0, role: "slider", "aria-label": label, "data-key": name });
  node.addEventListener("keydown", event => {
    if (!(event.key in STEPS) || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    step(STEPS[event.key]);
  });
  node.addEventListener("wheel", event => {
    if (document.activeElement !== node) return; // the page scrolls
    event.preventDefault();
    step(-Math.sign(event.deltaY));
  }, { passive: false });
  app.told.push(() => set(node, { "aria-valuemin": 0, "aria-valuemax": app.size(name) - 1,
    "aria-valuenow": app.at(name), "aria-valuetext": words() }));
}
/** Choose one of several marks, by a click or the arrow keys; one of them has the focus. */
export function chooser(app, nodes, name, label) {
  nodes.forEach((node, i) => {
    set(node, { role: "radio", "data-key": `${name}${i}` });
    const go = to => { app.pause(); app.put({ [name]: to }); };
    node.addEventListener("click", () => go(i));
    node.addEventListener("keydown", event => {
      if (!(event.key in STEPS)) return;
      event.preventDefault();
      const by = { ArrowDown: 1, ArrowUp: -1 }[event.key] ?? STEPS[event.key];
      const next = Math.abs(by) === 1 ? (i + by + nodes.length) % nodes.length
        : clamp(i + by, 0, nodes.length - 1);
      nodes[next].focus();
      go(next);
    });
  });
  app.told.push(() => nodes.forEach((node, i) => set(node, { "aria-checked": i === app.at(name),
    tabindex: i === app.at(name) ? 0 : -1, "aria-label": label(i) })));
}
/** Words under the mouse: `words(point)`, or nothing. */
export function hover(app, node, words) {
  node.addEventListener("pointermove", event => {
    const text = event.buttons ? "" : words(point(event, node));
    if (text) app.tip(text, event); else app.untip();
  });
  node.addEventListener("pointerleave", app.untip);
}
/** Play: `a` walks back and forth, and `b` with it if `both`; `speed` is in steps per second. */
export function walk(app, a, b, both, speed, dt, now) {
  const { held, shown, at } = app;
  if (!held.size) Object.assign(app, { way: 1, step: now, gap: at(a) - at(b) });
  held.add(a).add(b);
  if (!dt) { // reduced motion: a whole step every 0.7 s
    if (now - app.step < 700 / app.speed) return;
    dt = 1 / speed;
    app.step = now;
  }
  const least = both ? Math.max(0, app.gap) : 0;
  const most = both ? Math.min(app.size(a), app.size(b) + app.gap) - 1 : app.size(a) - 1;
  shown[a] = clamp(shown[a] + app.way * speed * dt, least, most);
  if (shown[a] === most) app.way = -1;
  if (shown[a] === least) app.way = 1;
  if (both) shown[b] = shown[a] - app.gap;
  if (Math.round(shown[a]) !== at(a) || Math.round(shown[b]) !== at(b))
    app.put({ [a]: shown[a], [b]: shown[b] }, true);
}

// ---- the buttons of every explorer ----
const ICONS = {
  reset: "M3 8a5 5 0 1 0 1.6-3.7M3 2.5v3h3", code: "M5.5 4.5 2 8l3.5 3.5M10.5 4.5 14 8l-3.5 3.5",
  link: "M6.5 9.5l3-3M7 4.6l1.3-1.3a3 3 0 0 1 4.3 4.3L11.4 9M9 11.4l-1.3 1.3a3 3 0 0 1-4.3-4.3L4.6 7",
  full: "M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10",
};
async function copied(text) {
  try { await navigator.clipboard.writeText(text); }
  catch { // a page from http has no clipboard: use the old way
    const box = html(document.body, "textarea", { style: "position:fixed;opacity:0" });
    box.value = text;
    box.select();
    document.execCommand("copy");
    box.remove();
  }
}

/**
 * Mount `explorer` in `root`. `data` is Python's table; `change(params)` is called when they come to rest;
 * `link(params)` gives the address of a setting, where there is one; `small` shows just the picture, for a
 * slide; "toy" only what the opening of a page has room for. Returns { params, still, set, destroy }.
 */
export function live(root, explorer, { data, params = {}, change = () => {}, link, small = false } = {}) {
  const table = { ...data.parameters, ...explorer.own }, names = Object.keys(table);
  const calm = matchMedia("(prefers-reduced-motion: reduce)"), smooth = explorer.smooth ?? [];
  const slide = small === true, app = { root, data, table, small, told: [], params: {}, shown: {}, held: new Set(), speed: 1 };
  for (const name of names) app.params[name] = params[name] ?? table[name].start;
  app.size = name => {
    const { size, values } = table[name];
    if (values) return values.length;
    return size === null ? explorer.sizes[name](app.params, data) : typeof size === "string" ? app.params[size] : size;
  };
  const tidy = () => names.forEach(name => {
    if (!table[name].values && !table[name].most) app.params[name] = clamp(Math.round(app.params[name]), 0, app.size(name) - 1);
  });
  tidy();
  /** A parameter as a whole number: for a listed one, its place in the list. */
  app.at = name => table[name].values?.indexOf(app.params[name]) ?? app.params[name];
  const start = { ...app.params };
  for (const name of smooth) app.shown[name] = app.at(name);
  /** How wide a part may be drawn: on a slide everything, text included, is drawn smaller and scaled up by `grow`. */
  app.width = parent => parent.clientWidth / app.grow;
  const known = () => Object.fromEntries(Object.keys(data.parameters).map(name => [name, app.params[name]]));

  // -- the frame loop: what is shown follows what is set --
  let request = 0, last = 0, playing = null, resting = 0, shape = "", paint, dt = 0, moving = false;
  const glides = new Map();
  const toward = (from, to) => from + (to - from) * (1 - Math.exp(-dt / 0.055));
  /** A number in the picture on its way to `target`. */
  app.glide = (key, target, near = 0.05) => {
    const from = glides.get(key) ?? target;
    const now = calm.matches || Math.abs(target - from) < near ? target : toward(from, target);
    glides.set(key, now);
    moving ||= now !== target;
    return now;
  };
  function tick(now) {
    request = 0;
    if (!stage.clientWidth) return; // hidden: it wakes up when it is shown
    dt = clamp(now - last, 4, 50) / 1000;
    last = now;
    moving = Boolean(playing);
    if (playing) explorer.play(app, playing, calm.matches ? 0 : dt * app.speed, now);
    for (const name of smooth) {
      const gap = app.at(name) - app.shown[name];
      if (app.held.has(name) || gap === 0) continue;
      if (calm.matches || Math.abs(gap) < 2e-3) app.shown[name] = app.at(name);
      else {
        app.shown[name] = toward(app.shown[name], app.at(name));
        moving = true;
      }
    }
    const built = `${explorer.shape(app)} ${stage.clientWidth} ${slide && root.clientHeight}`;
    if (built !== shape) {
      shape = built;
      rebuild();
    }
    paint();
    app.told.forEach(tell => tell());
    root.dataset.frame = +(root.dataset.frame || 0) + 1; // for tests: frames painted so far
    if (moving) app.wake();
  }
  app.wake = () => { if (!request) request = requestAnimationFrame(tick); };
  /** Is the picture taller than the slide's words leave room for? Then it is scaled up less. */
  function tall() {
    paint();
    return stage.offsetTop + stage.offsetHeight > root.clientHeight;
  }
  function rebuild() { // the focus stays where it was
    const own = stage.contains(document.activeElement) && document.activeElement.closest("[data-key]");
    const key = own ? own.dataset.key : null;
    app.untip();
    app.grow = slide ? 1.45 : 1;
    do {
      app.told.length = 0;
      stage.replaceChildren();
      paint = explorer.build(app, stage);
    } while (slide && tall() && (app.grow -= 0.03) > 1);
    app.told.forEach(tell => tell()); // first, because these give the nodes that can have the focus
    if (key !== null) app.focus(key);
  }
  app.focus = key => stage.querySelector(`[data-key="${key}"]`)?.focus({ preventScroll: true });

  // -- setting --
  app.set = (some, quiet) => {
    Object.assign(app.params, some);
    tidy();
    shows.forEach(show => show());
    clearTimeout(resting);
    resting = setTimeout(rest, 180, quiet);
    app.wake();
  };
  /** Set parameters by whole numbers, as `app.at` gives them. */
  app.put = (some, quiet) => app.set(Object.fromEntries(Object.entries(some).map(([name, i]) =>
    [name, table[name].values?.[clamp(Math.round(i), 0, app.size(name) - 1)] ?? i])), quiet);
  /** While it is being dragged, a value may lie between two steps. */
  app.hold = (name, value) => {
    app.pause();
    app.held.add(name);
    app.shown[name] = clamp(value, 0, app.size(name) - 1);
    app.put({ [name]: app.shown[name] });
  };
  app.release = name => { app.held.delete(name); app.wake(); };
  function rest(quiet) {
    resting = 0;
    const { description, result = "" } = explorer.scene(app.params, data), evidence = explorer.reached?.(app.params, data);
    say(words, description);
    say(outcome, result);
    if (quiet !== "first") say(said, description);
    const how = evidence ? speak`✔ Reached: ${evidence}` : speak`Not reached yet.`;
    if (data.challenge) say(verdict, speak`Challenge: ${data.challenge} ${how}`);
    verdict.classList.toggle("lv-reached", Boolean(evidence));
    if (!quiet) change(known());
  }

  // -- around the picture --
  root.classList.add("live");
  root.classList.toggle("lv-small", Boolean(small));
  root.classList.toggle("lv-toy", small === "toy");
  set(root, { role: "group", "aria-label": explorer.title, "data-lm-suppress-shortcuts": "true" });
  const bar = html(root, "div", { class: "lv-bar" }), stage = html(root, "div", { class: "lv-stage" });
  const outcome = html(root, "p", { class: "lv-result" }); // what is to be seen now, in one sentence
  const verdict = html(root, "p", { class: "lv-verdict", role: "status" });
  const more = html(root, "details", { class: "lv-more" });
  html(more, "summary", {}, speak`In words`);
  const words = html(more, "p"), said = html(root, "p", { class: "lv-unseen", "aria-live": "polite" });
  const bubble = html(root, "div", { class: "lv-tip", hidden: "" });
  app.tip = (text, { clientX, clientY }) => { // a slide scales everything
    const box = root.getBoundingClientRect(), zoom = box.width / root.offsetWidth || 1;
    const x = (clientX - box.left) / zoom, y = (clientY - box.top) / zoom, right = x > 0.6 * root.offsetWidth;
    say(bubble, text);
    bubble.hidden = false;
    bubble.style.transform = `translate(${x + (right ? -14 : 14)}px,${y - 14}px) translate(${-100 * right}%,-100%)`;
  };
  app.untip = () => { bubble.hidden = true; };

  if (explorer.question && !small) html(bar, "p", { class: "lv-question" }, explorer.question);
  let pace;
  const shows = [], settings = [], own = `lv${Math.random().toString(36).slice(2)}`;
  app.playbar = html(bar, "div", { class: "lv-plays" }); // `build` may put it beside what it moves
  const buttons = Object.entries(explorer.plays ?? {}).map(([name, label]) => {
    const button = html(app.playbar, "button", { type: "button", class: "lv-play", "aria-pressed": false },
      `▶ ${label}`);
    button.addEventListener("click", () => (playing === name ? app.pause() : play(name)));
    return [button, name, label];
  });
  if (buttons.length) {
    pace = html(app.playbar, "label", { class: "lv-menu" });
    html(pace, "span", {}, speak`speed of play`);
    const speed = html(pace, "select", { "aria-label": speak`speed of play` });
    for (const many of [0.25, 0.5, 1, 2, 4]) speed.add(new Option(`${many} ×`, many, many === 1, many === 1));
    speed.addEventListener("change", () => { app.speed = +speed.value; });
  }
  function mark() {
    for (const [button, name, label] of buttons) {
      set(button, { "aria-pressed": playing === name });
      say(button, `${playing === name ? "❚❚" : "▶"} ${label}`);
    }
  }
  function play(name) {
    playing = name;
    last = performance.now();
    app.held.clear();
    mark();
    app.wake();
  }
  app.pause = () => {
    if (!playing) return;
    playing = null;
    app.held.clear();
    mark();
    app.set({});
  };
  /** A line of text, and buttons for what keyboards lack; a space in a button's text is where the caret goes. */
  const fold = html(null, "details", { class: "lv-fold" });
  html(fold, "summary", {}, speak`more settings`);
  const inside = html(fold, "div", { class: "lv-bar" });
  function typed(name, label, most, signs) {
    const group = html(bar, "div", { class: "lv-typed" }), box = html(group, "label", { class: "lv-menu" });
    html(box, "span", {}, label);
    const input = html(box, "input", { type: "text", maxlength: most, spellcheck: false, autocomplete: "off", autocapitalize: "off", enterkeyhint: "done" });
    input.addEventListener("input", () => app.set({ [name]: input.value }));
    shows.push(() => { if (input.value !== app.params[name]) input.value = app.params[name]; });
    const row = html(group, "div", { class: "lv-keys" });
    row.addEventListener("mousedown", event => event.preventDefault()); // the field keeps the focus
    for (const sign of signs) {
      html(row, "button", { type: "button", class: "lv-key" }, sign).addEventListener("click", () => {
        input.focus({ preventScroll: true });
        const from = input.selectionStart, inside = sign.indexOf(" "), text = sign.replaceAll(" ", "");
        if (input.value.length + text.length > most) return;
        input.setRangeText(text, from, input.selectionEnd, "end");
        if (inside > 0) input.setSelectionRange(from + inside, from + inside);
        app.set({ [name]: input.value });
      });
    }
  }
  const bare = [...smooth, ...(explorer.drawn ?? [])];
  for (const name of names.filter(each => !bare.includes(each) && (!small || explorer[slide ? "slide" : small]?.includes(each)))) {
    const { values, texts, label, menu, most, keys: signs } = table[name];
    if (most) typed(name, label, most, signs);
    else if (!values) {
      const box = html(bar, "label", { class: "lv-menu" }, label);
      const input = html(box, "input", { type: "range", min: 0, step: 1 });
      input.addEventListener("input", () => app.set({ [name]: +input.value }));
      shows.push(() => { input.max = app.size(name) - 1; input.value = app.params[name]; });
    } else if (menu || values.length > 4 || explorer.menus?.includes(name)) {
      const box = html(html(bar, "label", { class: "lv-menu" }, label), "select");
      texts.forEach((text, i) => box.add(new Option(text, i)));
      box.addEventListener("change", () => app.set({ [name]: values[box.value] }));
      shows.push(() => { box.value = values.indexOf(app.params[name]); });
    } else {
      const group = html(bar, "fieldset");
      html(group, "legend", {}, label);
      const row = html(group, "div", { class: "lv-row" });
      texts.forEach((text, i) => {
        const choice = html(row, "label"), input = html(choice, "input", { type: "radio", name: own + name });
        html(choice, "span", {}, text);
        input.addEventListener("change", () => app.set({ [name]: values[i] }));
        shows.push(() => { input.checked = app.params[name] === values[i]; });
      });
    }
    settings.push([name, bar.lastChild]);
  }
  const tools = html(bar, "div", { class: "lv-tools" });
  function tool(icon, label, act) {
    const button = html(tools, "button", { type: "button", class: "lv-tool", "aria-label": label, title: label });
    svg(svg(button, "svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }), "path",
      { d: ICONS[icon], fill: "none", stroke: "currentColor", sw: 1.6, cap: 1, "stroke-linejoin": "round" });
    button.addEventListener("click", () => act(button));
  }
  const copies = text => button => copied(text()).then(() => {
    button.classList.add("lv-done");
    say(said, speak`Copied.`);
    setTimeout(() => button.classList.remove("lv-done"), 1200);
  });
  tool("reset", speak`Reset`, () => { app.pause(); app.set(start); });
  tool("code", speak`Copy a line of Python that shows this`, copies(() => {
    const given = Object.entries(known()).filter(([name, value]) => value !== table[name].start);
    return `${data.python}(${given.map(([name, value]) => `${name}=${python(value)}`).join(", ")})`;
  }));
  if (link) tool("link", speak`Copy a link to this setting`, copies(() => link(known())));
  if (root.requestFullscreen) tool("full", speak`Full screen`, () => (document.fullscreenElement
    ? document.exitFullscreen() : root.requestFullscreen()));

  let phone;
  /** Before the picture stand the settings that are not folded: on a phone one; there, the tools stand below it. */
  function arrange() {
    const now = !slide && root.clientWidth > 0 && root.clientWidth < 626, few = now && !small;
    if (now === phone) return;
    root.classList.toggle("lv-phone", phone = now);
    const main = explorer.main ?? settings[0]?.[0];
    for (const [name, node] of settings)
      (!small && explorer.folded?.includes(name) || few && name !== main ? inside : bar).append(node);
    if (pace) (few ? inside : app.playbar).append(pace);
    fold.remove();
    if (inside.hasChildNodes()) bar.append(fold); // what it holds is below all others
    if (few) more.before(tools); else bar.append(tools);
  }
  const keys = event => { if (!["Tab", "Escape"].includes(event.key)) event.stopPropagation(); };
  root.addEventListener("keydown", keys); // JupyterLab changes the cell, reveal.js the slide
  const sizes = new ResizeObserver(() => { // a hidden slide is 0 px wide
    arrange();
    if (stage.clientWidth) app.wake();
  });
  sizes.observe(stage);
  if (slide) sizes.observe(root);
  const seen = new IntersectionObserver(([entry]) => { if (!entry.isIntersecting) app.pause(); });
  seen.observe(stage);
  shows.forEach(show => show());
  arrange();
  if (stage.clientWidth) tick(performance.now());
  rest("first");
  return {
    get params() { return known(); },
    get alt() { return alt(explorer, app.params, data); },
    get still() { return !request && !resting; }, // everything that was set has been drawn, and Python knows it
    set: some => app.set(some, true),
    destroy() {
      cancelAnimationFrame(request);
      clearTimeout(resting);
      sizes.disconnect();
      seen.disconnect();
      root.replaceChildren();
      root.removeEventListener("keydown", keys);
      root.classList.remove("live");
    },
  };
}
const python = value => (typeof value === "string" ? JSON.stringify(value)
  : typeof value === "boolean" ? (value ? "True" : "False") : value);
