// Sinusoids: clocks, the two columns of the table that each draws, its wave, and its part of the dot product.
import { TAU, axes, canvas, clamp, clipped, commas, drag, general, grip, hover, html, minus, named, pens,
  point, range, say, scale, set, slide, slider, speak, svg, tag, through, ticks, walk, wedge, wrapped } from "./kit.js";

// ---- numbers: the same as Python's ----
export function omegas({ d_model: d, base, layout }) {
  return range(d / 2).map(t => base ** -(layout === "interleaved" ? 2 * t / d : t / Math.max(d / 2 - 1, 1)));
}
export const columns = (t, { d_model: d, layout }) => (layout === "interleaved" ? [2 * t, 2 * t + 1] : [t, t + d / 2]);
export const clockOf = (c, { d_model: d, layout }) => (layout === "interleaved" ? c >> 1 : c % (d / 2));
export function row(x, p, w = omegas(p)) {
  const found = Array(p.d_model);
  w.forEach((each, t) => {
    const [s, c] = columns(t, p);
    found[s] = Math.sin(x * each);
    found[c] = Math.cos(x * each);
  });
  return found;
}
const dot = (a, b) => a.reduce((sum, v, i) => sum + v * b[i], 0);

/** How a cell is computed, with the numbers put in. */
export function formula(x, c, { d_model: d, base, layout }) {
  const inter = layout === "interleaved", wave = (inter ? c % 2 : c >= d / 2) ? "cos" : "sin";
  const exponent = inter ? `${2 * (c >> 1)}/${d}` : `${c % (d / 2)}/${d / 2 - 1}`;
  return `PE(${x}, ${c}) = ${wave}(${x} / ${base}^(${exponent}))`;
}
export const cell = (x, c, p) => `${formula(x, c, p)} = ${row(x, p)[c].toFixed(4)}`;

export function scene(p, data) {
  const { d_model, positions, base, layout, view, position, dimension } = p, w = omegas(p);
  const table = range(positions).map(i => row(i, p, w)), here = table[position];
  let beside, seen;
  if (view === "vector") {
    beside = [range(d_model), here];
    seen = speak`the vector PE(${position})`;
  } else if (view === "wavelengths") {
    beside = [range(w.length), w.map(each => TAU / each)];
    seen = speak`wavelengths from ${(TAU / w[0]).toFixed(1)} to ${commas(TAU / w.at(-1))} positions`;
  } else {
    const dots = table.map(other => dot(other, here));
    beside = [range(positions), dots];
    seen = speak`its dot products with all others, at most ${general(Math.max(...dots), 4)} (with itself)`;
  }
  const next = dot(table[Math.min(position + 1, positions - 1)], here) / dot(here, here), end = dot(table[position > positions / 2 ? 0 : positions - 1], here) / dot(here, here);
  const result = next > end + 0.05 ? speak`The vector beside position ${position} is nearly the same (cosine ${next.toFixed(2)}), the one at the far end is not (${end.toFixed(2)}): near places look alike.`
    : speak`The vector beside position ${position} (cosine ${next.toFixed(2)}) is no more like it than the one at the far end (${end.toFixed(2)}).`;
  return { views: { table, beside }, result, readouts: { table: cell(position, dimension, p) }, description:
    speak`PE of ${positions} positions × ${d_model} dimensions, base ${base}, ${named("layout", layout, data)} layout, from −1 (dark blue) to +1 (light yellow); marked is position ${
      position}, dimension ${dimension}; beside it ${seen}.` };
}
export function reached(p, { near }) {
  const w = omegas(p), cosine = i => w.reduce((sum, each) => sum + Math.cos(i * each), 0) / w.length;
  let best = 2;
  for (const i of range(p.positions).slice(2)) if (cosine(i) > cosine(best)) best = i;
  return cosine(best) >= near ? speak`position ${best}, cosine ${cosine(best).toFixed(4)}.` : "";
}

// ---- the picture: p blue, o orange ----
const TWO = [["k", "other"], ["q", "position"]];

function build(app, stage) {
  const w = omegas(app.params), narrow = stage.clientWidth < 600;
  const above = tower(app, html(stage, "div", { style: "position:relative" }), w, narrow);
  if (app.small) return above;
  const two = html(stage, "div", { class: `lv-two lv-even${narrow ? " lv-one" : ""}` });
  const parts = [above, wave(app, html(two, "div"), w), sum(app, html(two, "div"), w)];
  return () => parts.forEach(paint => paint());
}

/** Clocks; below each, the cosine of the angle between p and o, and threads to its columns of the table. */
function tower(app, parent, w, narrow) {
  const { params: p, data } = app, W = app.width(parent), n = w.length, d = p.d_model;
  const x0 = narrow ? 52 : 84, x1 = W - (narrow ? 8 : 84), wide = (x1 - x0) / n, each = (x1 - x0) / d;
  const R = clamp(wide * 0.42, 3, 26), cy = R + 5, unit = 20, zero = 2 * R + 16 + unit, yThread = zero + unit + 4;
  const top = yThread + 22, tall = app.small ? 130 : narrow ? 150 : 142, H = top + tall + (narrow ? 54 : 34);
  const percent = (part, of) => `${(100 * part / of).toFixed(3)}%`, fine = p.positions > tall || d > x1 - x0;
  const cells = html(parent, "canvas", { width: d, height: p.positions, "aria-hidden": "true",
    style: `position:absolute;left:${percent(x0, W)};top:${percent(top, H)};width:${percent(x1 - x0, W)};height:${
      percent(tall, H)};image-rendering:${fine ? "auto" : "pixelated"}` });
  const [pic, pen] = canvas(parent, W, H, speak`Clocks, and the table that they draw`, { style: "position:relative" });
  const colours = range(data.palette.length / 6).map(i => `#${data.palette.slice(6 * i, 6 * i + 6)}`);
  const bytes = colours.map(hex => [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16)));
  const g = cells.getContext("2d"), image = g.createImageData(d, p.positions);
  for (const i of range(p.positions)) row(i, p, w).forEach((v, c) =>
    image.data.set([...bytes[Math.round((v + 1) / 2 * (bytes.length - 1))], 255], 4 * (i * d + c)));
  g.putImageData(image, 0, 0);

  // -- words at the sides, the colour bar --
  const side = (y, text, more = {}) => pen.text({ x: x0 - 12, y, ta: "end", vc: 1, ...more }, text);
  if (!narrow) {
    side(cy, speak`clocks`);
    side(zero - 8, speak`cosine of`);
    side(zero + 8, speak`the angle`);
    const bar = x1 + 16, high = tall / colours.length;
    colours.forEach((fill, i) => pen.rect({ x: bar, width: 10, y: top + tall - (i + 1) * high, height: high + 0.5, fill }));
    for (const v of [-1, 0, 1]) pen.text({ x: bar + 16, y: top + tall * (1 - v) / 2, vc: 1 }, v > 0 ? "+1" : minus(v));
  }
  if (app.small) {
    side(top + tall - 8, speak`position ↓`);
    pen.text({ x: x1, y: top + tall + 15, ta: "end", vc: 1 }, speak`numbers of its vector →`);
  }
  pen.line({ x1: x0, x2: x1, y1: zero, y2: zero, stroke: "--line", sw: 2 });
  const total = [pen.text({ x: x1 + 10, y: zero - 9, vc: 1 }, speak`sum: p·o`),
    pen.text({ x: x1 + 10, y: zero + 10, vc: 1, fill: "--mix", fw: 700, fs: 17 })];
  if (narrow || app.small) total.forEach(each_ => set(each_, { display: "none" }));

  const column = c => x0 + (c + 0.5) * each;
  const frame = pen.rect({ y: 1, width: wide, height: yThread - 1, rx: Math.min(8, wide / 3), fill: "--face", stroke: "--mix", sw: 2 });
  const threads = range(n).flatMap(t => [0, 1].map(s => [t, s, pen.path({ fill: "none", cap: 1 })]));
  const clocks = w.map((turn, t) => {
    const cx = x0 + (t + 0.5) * wide, one = pen.g({ style: "cursor:pointer" }), own = pens(one);
    own.rect({ x: cx - wide / 2, y: 0, width: wide, height: yThread, fill: "#0000" });
    own.circle({ cx, cy, r: R, fill: "--paper", stroke: "--line" });
    const between = R > 6 && own.path({ fill: "--mix2" });
    const hands = TWO.map(([name]) => [own.line({ x1: cx, y1: cy, stroke: `--${name}`, sw: clamp(R / 9, 1.2, 3), cap: 1 }),
      own.circle({ r: clamp(R / 6.5, 1.2, 4), fill: `--${name}` })]);
    const half = clamp(wide * 0.3, 1, 18);
    const bar = own.rect({ x: cx - half, width: 2 * half, rx: Math.min(3, half / 2), fill: "--mix" });
    one.addEventListener("click", () => {
      app.pause();
      app.set({ dimension: columns(t, p)[columns(clockOf(p.dimension, p), p).indexOf(p.dimension)] });
    });
    hover(app, one, () => speak`Clock ${t}: a turn in ${commas(TAU / turn, TAU / turn < 100 ? 2 : 0)} positions; cosine ${
      minus(Math.cos((Math.round(app.shown.position) - Math.round(app.shown.other)) * turn).toFixed(4))}`);
    return { cx, turn, between, hands, bar };
  });

  // -- the table: click a cell, drag the rows p and o, drag the column --
  const place = scale(0, p.positions - 1, top + tall / p.positions / 2, top + tall - tall / p.positions / 2);
  const hit = pen.rect({ x: x0, y: top, width: x1 - x0, height: tall, fill: "#0000", style: "cursor:pointer;touch-action:manipulation" });
  const at = to => [clamp(Math.round(place.back(to.y)), 0, p.positions - 1), clamp(Math.floor((to.x - x0) / each), 0, d - 1)];
  hit.addEventListener("click", event => {
    const [position, dimension] = at(point(event, pic));
    app.pause();
    app.set({ position, dimension });
  });
  hover(app, hit, to => minus(cell(...at(to), p)));
  const high = Math.max(6, tall / p.positions), rows = TWO.map(([name, of], i) => {
    const frames = [["--paper", 5], [`--${name}`, 2.5]].map(([stroke, sw]) => pen.rect({ x: x0 - 2, width: x1 - x0 + 4,
      height: high, rx: 2, fill: "none", stroke, sw, still: 1 }));
    const handle = grip(app, pic, name, of, "op"[i], i ? speak`position p` : speak`other position o`);
    slide(app, handle, of, to => place.back(to.y));
    return { of, frames, handle, x: x0 - (narrow ? (i ? 15 : 37) : (i ? 20 : 52)) };
  });
  const mark = pen.g({ class: "lv-grip" });
  const lines = [["--paper", 5], ["--mix", 2.5]].map(([stroke, sw]) => svg(mark, "rect", { x: -each / 2 - 1, width: each + 2, y: top - 1,
    height: tall + 2, rx: 2, fill: "none", stroke, sw, still: 1 }));
  svg(mark, "circle", { r: 20, cy: top + tall + 12, fill: "#0000" });
  svg(mark, "circle", { r: 13, cy: top + tall + 12, class: "lv-ring" });
  svg(mark, "path", { d: `M0 ${top + tall + 3}l9 14h-18Z`, fill: "--mix", rim: 1, "stroke-linejoin": "round" });
  drag(app, mark, "dimension", { move: to => app.hold("dimension", (to.x - x0) / each - 0.5) });
  const said = pen.text({ y: top + tall + (narrow ? 36 : 17), vc: 1, halo: 1, fs: narrow ? 13 : 14, fill: "--ink", still: 1, ...(app.small && { display: "none" }) });
  const spell = () => cell(p.position, p.dimension, p);
  slider(app, mark, "dimension", speak`dimension: a column of the table`, spell);

  return () => {
    const { position, other, dimension } = app.shown, own = clockOf(p.dimension, p);
    let sum_ = 0;
    for (const { cx, turn, between, hands, bar } of clocks) {
      [other, position].forEach((x, i) => {
        const px = cx + R * 0.84 * Math.cos(x * turn), py = cy - R * 0.84 * Math.sin(x * turn);
        set(hands[i][0], { x2: px, y2: py });
        set(hands[i][1], { cx: px, cy: py });
      });
      const a = (position - other) * turn, c = Math.cos(a);
      if (between) set(between, { d: wedge(cx, cy, R * 0.55, other * turn, other * turn + wrapped(a)) });
      set(bar, { y: zero - Math.max(0, c) * unit, height: Math.max(0.5, Math.abs(c) * unit) });
      sum_ += c;
    }
    for (const [t, s, thread] of threads) {
      const from = x0 + (t + 0.5) * wide + (s - 0.5) * Math.min(14, wide / 3), chosen = t === own;
      const to = app.glide(`${d} ${t} ${s}`, column(columns(t, p)[s]));
      set(thread, { d: `M${from.toFixed(1)} ${yThread}C${from.toFixed(1)} ${yThread + 14} ${to.toFixed(1)} ${top - 14} ${
        to.toFixed(1)} ${top - 1}`, stroke: chosen ? "--mix" : "--soft", sw: chosen ? 2.5 : 1, opacity: chosen ? 1 : n > 16 ? 0.2 : 0.4 });
    }
    for (const { of, frames, handle, x } of rows) {
      const y = place(app.shown[of]);
      frames.forEach(each_ => set(each_, { y: y - high / 2 }));
      set(handle, { transform: `translate(${x} ${y})` });
    }
    set(frame, { x: app.glide("clock", x0 + own * wide) });
    set(mark, { transform: `translate(${column(dimension)} 0)` });
    lines.forEach(line => set(line, { x: -Math.max(each, 5) / 2 - 1, width: Math.max(each, 5) + 2 }));
    const left = !narrow && column(dimension) > (x0 + x1) / 2;
    set(said, { x: narrow ? 0 : column(dimension) + (left ? -16 : 16), ta: left ? "end" : "start" });
    say(said, minus(spell()));
    say(total[1], minus(sum_.toFixed(4)));
  };
}

function frames(app, parent, title) {
  const W = app.width(parent), H = 190, last = app.params.positions - 1, bottom = H - 38;
  const [pic, pen] = canvas(parent, W, H, title), x = scale(0, last, 38, W - 8);
  const xs = ticks(0, last, 6).filter(v => Number.isInteger(v) && last - v > last / 12);
  return { W, H, last, bottom, pic, pen, x, xs: [...xs, last], head: pen.text({ x: 0, y: 12, fill: "--ink", fw: 700 }) };
}

/** The waves of the framed clock. */
function wave(app, parent, w) {
  const { params: p } = app, { W, last, bottom, pic, pen, x, xs, head } = frames(app, parent, speak`The waves of the framed clock`);
  const y = scale(-1.1, 1.1, bottom, 26), fine = range(Math.min(Math.ceil(2 * W), 800) + 1);
  axes(pic, x, y, xs, [-1, 0, 1], speak`position`, bottom);
  const at = fine.map(i => last * i / (fine.length - 1));
  const paths = ["6 4", "none"].map(dash => pen.path({ fill: "none", stroke: dash === "none" ? "--ink" : "--soft", sw: 2.2, dash }));
  pen.text({ x: W - 8, y: W < 380 ? bottom + 34 : 12, ta: "end" }, "— sin  - - cos");
  const marks = TWO.map(([name, of]) => {
    const g = pen.g();
    svg(g, "rect", { x: -12, y: 20, width: 24, height: bottom - 20, fill: "#0000" });
    svg(g, "line", { y1: 22, y2: bottom, stroke: `--${name}`, sw: 2 });
    const ends = [0, 1].map(() => svg(g, "circle", { r: 5.5, fill: `--${name}`, rim: 1 }));
    slide(app, g, of, to => x.back(to.x));
    return { of, g, ends };
  });
  let drawn = -1;
  return () => {
    const t = clockOf(p.dimension, p);
    if (t !== drawn) {
      drawn = t;
      [Math.cos, Math.sin].forEach((f, i) => set(paths[i], { d: through(at, x, y, v => f(v * w[t])) }));
      say(head, speak`Clock ${t}: a turn in ${commas(TAU / w[t], TAU / w[t] < 100 ? 2 : 0)} positions`);
    }
    for (const { of, g, ends } of marks) {
      const v = app.shown[of];
      set(g, { transform: `translate(${x(v)} 0)` });
      [Math.sin, Math.cos].forEach((f, i) => set(ends[i], { cy: y(f(v * w[t])) }));
    }
  };
}

/** The dot product of p with every position: the sum of the cosines. */
function sum(app, parent, w) {
  const { params: p } = app, { W, H, last, bottom, pic, pen, x, xs, head } = frames(app, parent, speak`p·o for every position o`);
  const n = w.length, least = -Math.max(1.2, 0.3 * n), y = scale(least, n * 1.06, bottom, 26);
  const of = v => w.reduce((so, each) => so + Math.cos(v * each), 0);
  axes(pic, x, y, xs, ticks(least, n * 1.06, 4), speak`other position o`, bottom);
  say(head, speak`p·o = sum of ${n} cosines`);
  // Drawn once, over the offset o − p: when p moves, it only slides.
  const curves = clipped(pic, x(0) - 1, x(last) + 1, H + 9), many = Math.ceil(Math.min(p.positions * 10, 2.4 * W));
  const offsets = range(many + 1).map(i => last * (2 * i / many - 1));
  const singles = n > 16 ? [] : w.map(each => svg(curves, "path",
    { d: through(offsets, x, y, v => Math.cos(v * each)), fill: "none", stroke: "--mix" }));
  svg(curves, "path", { d: through(offsets, x, y, of), fill: "none", stroke: "--ink", sw: 2.5 });
  const self = pen.line({ y1: 22, y2: bottom, stroke: "--q", sw: 2, dash: "3 4" });
  const area = pen.rect({ x: x(0) - 6, y: 20, width: x(last) - x(0) + 12, height: bottom - 20, fill: "#0000",
    style: "cursor:col-resize;touch-action:pan-y" });
  slide(app, area, "other", to => x.back(to.x), true);
  hover(app, area, to => {
    const o = clamp(Math.round(x.back(to.x)), 0, last);
    return `p·PE(${o}) = ${minus(of(Math.round(app.shown.position) - o).toFixed(4))}`;
  });
  const stem = pen.line({ y1: 22, y2: bottom, stroke: "--k", sw: 2, still: 1 });
  const spot = pen.circle({ r: 7, fill: "--k", rim: 1, still: 1 }), value = tag(pic, "--ink");
  return () => {
    const { position, other } = app.shown, s = of(position - other), own = clockOf(p.dimension, p);
    set(curves, { transform: `translate(${x(position) - x(0)} 0)` });
    singles.forEach((path, t) => set(path, t === own ? { sw: 2.5, opacity: 1 } : { sw: 1.2, opacity: n > 8 ? 0.25 : 0.4 }));
    set(self, { x1: x(position), x2: x(position) });
    set(stem, { x1: x(other), x2: x(other) });
    set(spot, { cx: x(other), cy: y(s) });
    value(x(other), y(s), minus(s.toFixed(3)), W);
  };
}

export const sinusoidal = {
  title: speak`Sinusoids: clocks that draw a table`, question: speak`Let o and p walk: which positions look alike?`,
  smooth: ["position", "other", "dimension"], drawn: ["view"],
  menus: ["base"], slide: ["layout"], own: { other: { label: speak`other position`, size: "positions", start: 0 } },
  plays: { both: speak`both walk on`, one: speak`p walks` },
  shape: ({ params: p }) => [p.d_model, p.positions, p.base, p.layout].join(),
  scene, reached, build,
  play: (app, how, dt, now) => walk(app, "position", "other", how === "both", app.params.positions / 12, dt, now),
};
