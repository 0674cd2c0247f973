// Attention: drag the word vectors; scores, weights, and the mixture follow.
import { arrow, canvas, chooser, clamp, drag, hover, html, list, minus, named, pens, range, say, scale,
  set, slide, slider, speak, svg, walk } from "./kit.js";

const WORDS = ["the", "cat", "sleeps"], at = n => (n - 20) / 10;

// ---- numbers: the same as Python's ----
const vectors = (words, places) => words.map(word => ["x", "y"].map(axis => at(places[`${word}_${axis}`])));
/** Scores, weights and the mixture of the word at `row`; a score is −∞ where it may not look. */
export function attend(row, x, sharpness, mask) {
  const scores = x.map((key, j) => (mask === "causal" && j > row ? -Infinity
    : sharpness * (x[row][0] * key[0] + x[row][1] * key[1]) / Math.SQRT2));
  const most = Math.max(...scores), parts = scores.map(s => Math.exp(s - most));
  const sum = parts.reduce((a, b) => a + b), weights = parts.map(part => part / sum);
  return { scores, weights, mixed: [0, 1].map(i => x.reduce((so, v, j) => so + weights[j] * v[i], 0)) };
}
const all = p => range(3).map(row => attend(row, vectors(p.order.split(" "), p), p.sharpness, p.mask));

export function scene(p, data) {
  const names = p.order.split(" "), every = all(p), { weights, mixed } = every[p.row];
  const ends = [...vectors(names, p), mixed];
  const most = weights.indexOf(Math.max(...weights)), sees = weights.filter(w => w > 0);
  const result = sees.length > 1 && Math.max(...sees) - Math.min(...sees) < 0.01 ? speak`“${names[p.row]}” takes as much from every word that it sees: its output is their mean.`
    : speak`“${names[p.row]}” takes ${(100 * weights[most]).toFixed(0)} % from “${names[most]}”, more than from any other word.`;
  return { views: { plane: [0, 1].map(i => ends.map(end => end[i])), weights: every.map(each => each.weights) }, result,
    description: speak`Scores times ${p.sharpness}, mask ${named("mask", p.mask, data)}: “${names[p.row]}” looks at ${
      list(names.map((name, j) => `“${name}” ${weights[j].toFixed(2)}`))}; so its output is (${mixed.map(v => v.toFixed(2)).join(", ")}).` };
}
export function reached(p, { even }) {
  const w = all(p).flatMap(each => each.weights);
  return Math.max(...w) - Math.min(...w) < even ? speak`all nine weights are ${(w.reduce((a, b) => a + b) / 9).toFixed(2)}.` : "";
}

// ---- the picture ----
function build(app, stage) {
  const narrow = stage.clientWidth < 600, { params: p, shown } = app;
  const two = html(stage, "div", { class: `lv-two lv-even${narrow ? " lv-one" : ""}` });
  const parts = [plane(app, html(two, "div")), steps(app, html(two, "div"))];
  return () => {
    const names = p.order.split(" "), x = vectors(names, shown), { values } = app.table.sharpness;
    const a = Math.floor(shown.sharpness), sharpness = values[a] + (shown.sharpness - a) * ((values[a + 1] ?? 0) - values[a]);
    const every = range(3).map(row => attend(row, x, sharpness, p.mask));
    parts.forEach(paint => paint({ names, x, every, sharpness, asks: names[p.row], own: every[p.row] }));
  };
}
const pair = v => `(${v.map(c => minus(c.toFixed(2))).join(", ")})`;

/** Three vectors, and the output, which cannot leave their triangle. */
function plane(app, parent) {
  const W = Math.min(app.width(parent), app.small ? 330 : 440), edge = 30, H = W - 8;
  const x = scale(-2.15, 2.15, edge, W - 6), y = scale(-2.15, 2.15, H - edge, 6);
  const [pic, pen] = canvas(parent, W, H, speak`The word vectors, and their mixture`,
    { style: `max-width:${app.grow * W}px;margin:auto` });
  pen.rect({ x: x(-2.15), y: y(2.15), width: x(2.15) - x(-2.15), height: y(-2.15) - y(2.15), rx: 8, fill: "--face" });
  for (const v of [-2, -1, 0, 1, 2]) {
    pen.line({ x1: x(v), x2: x(v), y1: y(-2.15), y2: y(2.15), stroke: "--line", sw: v ? 1 : 2 });
    pen.line({ y1: y(v), y2: y(v), x1: x(-2.15), x2: x(2.15), stroke: "--line", sw: v ? 1 : 2 });
    if (!v) continue;
    pen.text({ x: x(v), y: y(0) + 14, ta: "middle", fs: 11.5 }, minus(v));
    pen.text({ x: x(0) - 6, y: y(v), ta: "end", vc: 1, fs: 11.5 }, minus(v));
  }
  const triangle = pen.path({ fill: "--mix2", stroke: "--mix", sw: 1, dash: "3 4", "stroke-linejoin": "round", opacity: 0.75 });
  const chain = range(3).map(() => pen.path({ fill: "none", stroke: "--k", sw: 2.5, cap: 1 }));
  const out = [pen.path({ stroke: "--mix", sw: 5, cap: 1 }), pen.path({ fill: "--mix" })];
  const grips = WORDS.flatMap(word => ["x", "y"].map(axis => { // on the edges, to move one coordinate at a time
    const name = `${word}_${axis}`, g = pen.g({ class: "lv-grip" });
    svg(g, "circle", { r: 13, fill: "#0000" });
    svg(g, "circle", { r: 11, class: "lv-ring" });
    const mark = svg(g, "path", { d: axis === "x" ? "M0 -7l7 12h-14Z" : "M7 0l-12 7v-14Z", rim: 1, "stroke-linejoin": "round" });
    slider(app, g, name, speak`${axis} of “${word}”`, () => at(app.params[name]));
    slide(app, g, name, to => 20 + 10 * (axis === "x" ? x.back(to.x) : y.back(to.y)));
    return { name, word, axis, g, mark };
  }));
  const hands = WORDS.map(word => {
    const hand = pen.g({ class: "lv-hand" }), lines = [svg(hand, "path", { sw: 5, cap: 1 }), svg(hand, "path")];
    const spots = [svg(hand, "circle", { r: 17, class: "lv-ring" }), svg(hand, "circle", { r: 22, fill: "#0000" })];
    const label = svg(hand, "text", { halo: 1, mid: 1, fw: 700, fs: 16, still: 1, translate: "no" }, word);
    drag(app, hand, `${word}_x`, {
      move(to) { app.hold(`${word}_x`, 20 + 10 * x.back(to.x)); app.hold(`${word}_y`, 20 + 10 * y.back(to.y)); },
      up: () => app.release(`${word}_y`),
    });
    return { word, hand, lines, spots, label };
  });
  pen.circle({ cx: x(0), cy: y(0), r: 4, fill: "--ink" });
  const named = pen.text({ halo: 1, mid: 1, fill: "--mix", fw: 700, fs: 16, still: 1 }, speak`output`);

  return ({ names, x: v, own, asks }) => {
    const tips = v.map(([a, b]) => [x(a), y(b)]), [ox, oy] = [x(own.mixed[0]), y(own.mixed[1])];
    set(triangle, { d: `M${tips.filter((_, j) => own.weights[j] > 0).map(tip => tip.map(c => c.toFixed(1)).join(" ")).join("L")}Z` });
    let from = [0, 0];
    own.weights.forEach((w, j) => { // the parts, one after the other, end where the output does
      const to = from.map((c, i) => c + w * v[j][i]);
      set(chain[j], { d: `M${x(from[0]).toFixed(1)} ${y(from[1]).toFixed(1)}L${x(to[0]).toFixed(1)} ${y(to[1]).toFixed(1)}`,
        visibility: w > 1e-3 ? "visible" : "hidden" });
      from = to;
    });
    for (const { word, hand, lines, spots, label } of hands) {
      const j = names.indexOf(word), [tx, ty] = tips[j], colour = word === asks ? "--q" : "--k", drawn = arrow(x(0), y(0), tx, ty, 16);
      const far = Math.hypot(tx - x(0), ty - y(0)), away = far > 20 ? [(tx - x(0)) / far, (ty - y(0)) / far] : [0, -1];
      set(lines[0], { d: far > 16 ? drawn.line : "", stroke: colour });
      set(lines[1], { d: far > 1 ? drawn.head : "", fill: colour });
      set(hand, { opacity: own.weights[j] || word === asks ? 1 : 0.35 });
      spots.forEach(spot => set(spot, { cx: tx, cy: ty }));
      const half = 5 * word.length;
      set(label, { x: clamp(tx + away[0] * (half + 8), edge + half, W - half), y: clamp(ty + away[1] * 18, 16, H - edge - 12), fill: colour });
    }
    for (const { word, axis, g, mark } of grips) {
      const tip = tips[names.indexOf(word)];
      set(mark, { fill: word === asks ? "--q" : "--k" });
      set(g, { transform: axis === "x" ? `translate(${tip[0].toFixed(1)} ${H - edge + 14})` : `translate(${edge - 14} ${tip[1].toFixed(1)})` });
    }
    const drawn = arrow(x(0), y(0), ox, oy, 15), far = Math.hypot(ox - x(0), oy - y(0));
    set(out[0], { d: far > 15 ? drawn.line : "" });
    set(out[1], { d: far > 1 ? drawn.head : "" });
    const [qx, qy] = v[names.indexOf(asks)], [mx, my] = own.mixed, side = mx * qy - my * qx < -1e-9 ? -1 : 1; // away from q
    const [ux, uy] = far > 1 ? [(ox - x(0)) / far, (oy - y(0)) / far] : [0, -1];
    set(named, { x: clamp(ox - 0.25 * far * ux - side * uy * 34, edge + 28, W - 30), y: clamp(oy - 0.25 * far * uy + side * ux * 17, 14, H - edge - 10) });
  };
}

/** From left to right: score, weight; below, the weights of all words. */
function steps(app, parent) {
  const { params: p } = app, W = app.width(parent), narrow = W < 400, high = app.small ? 30 : 42, top = 106, H0 = top + 3 * high;
  const xs = { name: 0, zero: narrow ? 128 : 146, score: narrow ? 50 : 64, weight: narrow ? 206 : 250, last: W - 52 };
  const [pic, pen] = canvas(parent, W, H0, speak`Scores and weights of one word`);
  // how sharp: a rail
  const { values } = app.table.sharpness, x = scale(0, values.length - 1, narrow ? 118 : 124, W - 26);
  pen.text({ x: 0, y: 16, vc: 1 }, speak`scores times`);
  const rail = pen.g();
  svg(rail, "rect", { x: x(0) - 12, y: 2, width: x(values.length - 1) - x(0) + 24, height: 28, fill: "#0000", style: "cursor:pointer" });
  svg(rail, "line", { x1: x(0), x2: x(values.length - 1), y1: 16, y2: 16, stroke: "--line", sw: 3, cap: 1 });
  values.forEach((value, i) => svg(rail, "text", { x: x(i), y: 38, ta: "middle", fs: 11.5 }, value));
  values.forEach((_, i) => svg(rail, "circle", { cx: x(i), cy: 16, r: 3.5, fill: "--line" }));
  const handle = pen.g({ class: "lv-grip" });
  svg(handle, "circle", { r: 20, fill: "#0000" });
  svg(handle, "circle", { r: 13, class: "lv-ring" });
  svg(handle, "circle", { r: 9, fill: "--mix", rim: 1 });
  slider(app, handle, "sharpness", speak`scores times`, () => p.sharpness);
  for (const node of [rail, handle]) slide(app, node, "sharpness", to => x.back(to.x), node === rail);

  const asks_ = pen.text({ x: xs.name, y: top - 36, fill: "--q", fw: 700, fs: 16 });
  const head = pen.text({ x: xs.weight - 14, y: top - 12, ta: "end" });
  pen.text({ x: xs.weight, y: top - 14 }, speak`softmax: weight`);
  pen.line({ x1: xs.zero, x2: xs.zero, y1: top - 4, y2: H0 - 6, stroke: "--line", sw: 2 });
  pen.line({ x1: xs.weight, x2: xs.weight, y1: top - 4, y2: H0 - 6, stroke: "--line", sw: 2 });
  const rows = WORDS.map(word => {
    const g = pen.g(), own = pens(g), mid = high / 2;
    const label = own.text({ x: xs.name, y: mid, vc: 1, fw: 700, fs: 16, translate: "no" }, word);
    const bar = own.rect({ y: mid - 9, height: 18, rx: 3, fill: "--soft" }), number = own.text({ vc: 1, y: mid, halo: 1, fill: "--ink" });
    const share = own.rect({ x: xs.weight, y: mid - 9, height: 18, rx: 3, fill: "--mix" });
    const percent = own.text({ vc: 1, y: mid, fill: "--mix", fw: 700, fs: 15 });
    return { word, g, label, bar, number, share, percent };
  });

  // all weights: a row for each word that asks
  const side = narrow ? 62 : 54, tall = app.small ? 28 : 46, left = 66, below = html(parent, "div", { style: "margin-top:10px" });
  const [grid, ink] = canvas(below, W, 26 + 3 * tall + (narrow && !app.small ? 26 : 4), speak`All weights: each row adds up to 1`);
  set(grid, { role: "radiogroup" });
  const frame = ink.rect({ x: 1, width: left + 3 * side + 3, height: tall, rx: 7, fill: "--face", stroke: "--mix", sw: 2 });
  const tops = WORDS.map(word => ink.text({ y: 14, ta: "middle", translate: "no" }, word));
  const sides = range(3).map(i => {
    const g = ink.g({ class: "lv-clock" });
    svg(g, "rect", { x: 1, y: 26 + i * tall, width: left + 3 * side + 3, height: tall, rx: 7, class: "lv-hit" });
    return g;
  });
  const asking = WORDS.map(word => ink.text({ x: left - 10, ta: "end", vc: 1, still: 1, translate: "no" }, word));
  const cells = WORDS.flatMap(a => WORDS.map(b => {
    const g = ink.g({ still: 1 }), box = svg(g, "rect", { x: 2, y: 3, width: side - 4, height: tall - 6, rx: 5, fill: "--mix", stroke: "--line" });
    return { a, b, g, box, text: svg(g, "text", { x: side / 2, y: tall / 2, mid: 1, fw: 600, fs: 14 }) };
  }));
  const mixing = ink.g({ still: 1 }), words = (app.small ? [] : narrow ? [4] : range(5)).map(i =>
    svg(mixing, "text", { x: narrow ? left : left + 3 * side + 20, y: narrow ? 40 + 3 * tall : 26 + (i + 0.5) * 3 * tall / 5, vc: 1, fs: 13.5,
      fill: i === 4 ? "--mix" : i ? "--k" : "--soft", fw: i === 4 ? 700 : 400 }));
  chooser(app, sides, "row", i => speak`“${p.order.split(" ")[i]}” asks; its weights ${all(p)[i].weights.map(w => w.toFixed(2)).join(", ")}`);
  hover(app, grid, to => {
    const i = Math.floor((to.y - 26) / tall), j = Math.floor((to.x - left) / side), names = p.order.split(" ");
    return names[i] && names[j] && speak`“${names[i]}” looks at “${names[j]}” ${all(p)[i].weights[j].toFixed(4)}`;
  });

  return ({ names, x: v, every, own, asks, sharpness }) => {
    set(handle, { transform: `translate(${x(app.shown.sharpness)} 16)` });
    say(asks_, speak`“${asks}” looks at`);
    const longest = Math.max(1, ...own.scores.filter(Number.isFinite).map(Math.abs));
    const room = xs.score / longest;
    say(head, speak`score: ${`q·k ${sharpness === 1 ? "" : `× ${+sharpness.toFixed(2)} `}/ √2`}`);
    for (const { word, g, label, bar, number, share, percent } of rows) {
      const j = names.indexOf(word), s = own.scores[j], w = own.weights[j], seen = Number.isFinite(s);
      set(g, { transform: `translate(0 ${(top + app.glide(`row ${word}`, j) * high).toFixed(1)})`, opacity: seen ? 1 : 0.6 });
      set(label, { fill: word === asks ? "--q" : "--k" });
      const long = seen ? s * room : 0;
      set(bar, { x: xs.zero + Math.min(0, long), width: Math.abs(long) });
      set(number, { x: xs.zero + (seen && s < 0 ? 6 : -6), ta: seen && s < 0 ? "start" : "end" });
      say(number, seen ? minus(s.toFixed(2)) : speak`masked`);
      set(share, { width: w * (xs.last - xs.weight) });
      set(percent, { x: xs.weight + w * (xs.last - xs.weight) + 7 });
      say(percent, w.toFixed(3));
    }
    set(frame, { y: 26 + app.glide("frame", names.indexOf(asks)) * tall });
    const spot = word => app.glide(`cell ${word}`, names.indexOf(word));
    WORDS.forEach((word, i) => {
      set(tops[i], { x: left + (spot(word) + 0.5) * side });
      set(asking[i], { y: 26 + (spot(word) + 0.5) * tall, fill: word === asks ? "--q" : "--soft", fw: word === asks ? 700 : 400 });
    });
    for (const { a, b, g, box, text } of cells) {
      const w = every[names.indexOf(a)].weights[names.indexOf(b)];
      set(g, { transform: `translate(${(left + spot(b) * side).toFixed(1)} ${(26 + spot(a) * tall).toFixed(1)})` });
      set(box, { "fill-opacity": w.toFixed(3), dash: w ? "none" : "3 3" });
      set(text, { fill: w > 0.55 ? "--paper" : "--ink" });
      say(text, w ? w.toFixed(2) : "–");
    }
    const mixture = [speak`mixed by the weights:`, ...own.weights.map((w, j) => `${j ? "+ " : "   "}${w.toFixed(2)} × ${pair(v[j])}`),
      `= ${pair(own.mixed)}`];
    words.forEach((text, i) => say(text, mixture.at(narrow ? -1 : i)));
  };
}

export const attention = {
  title: speak`Attention: three words look at each other`, question: speak`Drag an arrow: who looks at whom?`,
  drawn: ["row"], main: "mask", slide: ["order", "mask"],
  smooth: ["sharpness", ...WORDS.flatMap(word => [`${word}_x`, `${word}_y`])],
  plays: { grow: speak`scores grow` }, shape: () => "",
  scene, reached, build,
  play: (app, how, dt, now) => walk(app, "sharpness", "sharpness", false, 1.5, dt, now),
};
