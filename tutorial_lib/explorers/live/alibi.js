// ALiBi: a line that falls with distance, and a text whose words fade with it, head by head.
import { canvas, clamp, clipped, commas, drag, general, grip, hover, html, minus, pens, range, say,
  scale, set, slide, speak, svg, tag, walk } from "./kit.js";

// ---- numbers: the same as Python's ----
const powers = n => range(n).map(h => 2 ** (-8 * (h + 1) / n));
export function slopes(n) {
  const low = 2 ** Math.floor(Math.log2(n));
  return n === low ? powers(n) : [...powers(low), ...powers(2 * low).filter((_, h) => h % 2 === 0).slice(0, n - low)];
}
export const causal = ({ form }) => form === "penalty" || form === "released";
/** Slopes of all heads, for keys behind and, where they are seen, for keys ahead. */
export function sides(p) {
  if (p.form !== "asymmetric") return causal(p) ? [slopes(p.heads)] : [slopes(p.heads), slopes(p.heads)];
  const deal = slopes(2 * p.heads).sort((a, b) => b - a);
  return [0, 1].map(side => deal.filter((_, i) => i % 2 === side));
}
/** How much less than its own weight a query gives to the key `ahead` places on: a logarithm, −∞ if it may not look. */
export const fall = (ahead, [behind, front = Infinity]) => (ahead ? (ahead > 0 ? -front * ahead : behind * ahead) : 0);
const of = (slope, head) => slope.map(side => side[head]);

export function scene(p, { forms, faint }) {
  const { heads, head, length, form, query, key } = p, keys = range(length), slope = sides(p);
  const shares = range(heads).map(h => keys.map(j => Math.exp(fall(j - query, of(slope, h)))));
  const lift = form === "released" ? slope[0][head] * query : 0, masked = causal(p) && key > query;
  const seen = causal(p) ? range(query + 1) : keys, bias = seen.map(j => lift + fall(j - query, of(slope, head)));
  const weight = shares[head][key] / shares[head].reduce((sum, v) => sum + v, 0);
  const reach = slope.map((side, i) => (i ? speak`${commas(-Math.log(faint) / side[head])} tokens ahead (slope ${general(side[head], 4)})`
    : speak`${commas(-Math.log(faint) / side[head])} tokens behind (slope ${general(side[head], 4)})`)).join(speak` and `);
  const look = masked ? speak`the query at ${query} may not look at the key at ${key}`
    : speak`the query at ${query} has a bias of ${general(bias[key], 4)} and a weight of ${general(weight, 4)} for the key at ${key}`;
  const far = Math.abs(query - key), nearest = Math.exp(-fall(key - query, of(slope, head)));
  const side = slope[key > query && slope.length > 1 ? 1 : 0][head], end = commas(-Math.log(faint) / side);
  const result = masked ? speak`Token ${query} may not look ahead at token ${key}.` : far === 0 ? speak`For head ${head} a word that is ${end} places away is as good as gone.`
    : speak`For head ${head} the word ${far} places away weighs ${commas(nearest, nearest < 10 ? 1 : 0)} times less than its own; ${end} places away it is as good as gone.`;
  const same = { penalty: "",
    released: speak`; the weights are those of −m(i−j), since rows differ by a constant only`,
    symmetric: speak`; a key behind and one as far ahead weigh the same`,
    asymmetric: speak`; a key behind and one as far ahead weigh differently` }[form];
  return { views: { bias: [seen, bias], weights: shares },
    readouts: { bias: masked ? speak`query ${query}, key ${key}: masked` : speak`query ${query}, key ${key}: bias ${general(bias[key], 4)}` },
    result, description: speak`Head ${head} of ${heads}, ${forms[form]}: with equal contents ${look}; next to its own, weights fall to 1/${
      commas(1 / faint)} within ${reach}${same}.` };
}
export function reached(p, { faint, wanted }) {
  const slope = sides(p)[0][p.head], far = -Math.log(faint) / slope;
  return far >= wanted[0] && far <= wanted[1]
    ? speak`head ${p.head} of ${p.heads} has the slope ${slope.toFixed(4)} and the horizon ${far.toFixed(0)}.` : "";
}

// ---- the picture ----
const FLOOR = -Math.log(1e-4), HIGHEST = 14;

function build(app, stage) {
  const narrow = stage.clientWidth < 600, { params: p } = app, slope = sides(p);
  const parts = [text(app, html(stage, "div"), narrow)];
  const two = html(stage, "div", { class: `lv-two lv-even${narrow || app.small ? " lv-one" : ""}` });
  if (!app.small) parts.push(fan(app, html(two, "div"), slope, narrow));
  parts.push(strips(app, html(two, "div"), slope, narrow));
  return () => {
    const { head } = app.shown, a = Math.floor(head), b = Math.ceil(head);
    // between two heads the slope is between theirs
    const own = slope.map(side => side[a] ** (1 - head + a) * side[b] ** (head - a));
    parts.forEach(paint => paint(own));
  };
}
const walked = (app, j) => Math.round(j) - Math.round(app.shown.query);
const spoken = (app, j, own) => {
  const d = walked(app, j), bias = fall(d, own);
  return d > 0 && causal(app.params) ? speak`may not be looked at`
    : d > 0 ? speak`${d} ahead: × ${general(Math.exp(bias), 3)}` : speak`${-d} back: × ${general(Math.exp(bias), 3)}`;
};

/** The words, each as strong as its weight compared with the strongest. */
function text(app, parent, narrow) {
  const { params: p, data } = app, W = app.width(parent), high = narrow ? 23 : app.small ? 24 : 27, fs = narrow || app.small ? 15 : 17;
  const [pic] = canvas(parent, W, high, speak`A text, faded as this head sees it`);
  let x = 6, line = 0;
  const words = data.text.split(" ").slice(0, p.length).map((word, j) => {
    const g = svg(pic, "g"), box = svg(g, "rect", { height: high - 4, y: 2 - high / 2, rx: 6, sw: 2 });
    const under = svg(g, "path", { stroke: "--soft", dash: "2 3" });
    const ink = svg(g, "text", { vc: 1, fs, fill: "--ink", translate: "no" }, word), wide = ink.getComputedTextLength() || 9 * word.length;
    if (x + wide > W - 6) {
      x = 6;
      line++;
    }
    const place = { word, under, box, ink, x, y: (line + 0.5) * high, wide };
    set(g, { transform: `translate(${x} ${place.y})` });
    set(box, { x: -4, width: wide + 8 });
    set(under, { d: `M0 ${high / 2 - 3}h${wide}` });
    x += wide + (narrow ? 7 : 9);
    return place;
  });
  set(pic, { viewBox: `0 0 ${W} ${(line + 1) * high}` });
  const area = svg(pic, "rect", { width: W, height: (line + 1) * high, fill: "#0000", style: "cursor:pointer;touch-action:pan-y" });
  const nearest = to => words.reduce((best, { x: left, y, wide }, j) => {
    const far = 4 * Math.abs(to.y - y) + Math.max(0, left - to.x, to.x - left - wide);
    return far < best[0] ? [far, j] : best;
  }, [Infinity, 0])[1];
  // the query's own word is dragged; any other becomes the key
  let held = "key";
  const go = to => app.hold(held, nearest(to));
  drag(app, area, "key", { move: go, up: () => app.release("query"),
    down(to) { held = nearest(to) === p.query ? "query" : "key"; go(to); } });
  let own = [1];
  hover(app, area, to => { const j = nearest(to); return speak`“${words[j].word}”, ${spoken(app, j, own)}`; });
  return now => {
    own = now;
    const { query } = app.shown;
    words.forEach(({ box, ink, under }, j) => {
      const isQuery = j === p.query, isKey = j === p.key, masked = causal(p) && j > query + 0.5;
      const share = Math.exp(fall(j - query, j > query && causal(p) ? [own[0], 3] : own));
      set(ink, { "fill-opacity": isQuery ? 1 : Math.max(app.small ? 0.45 : 0.42, share).toFixed(3), fill: isQuery ? "--paper" : "--ink" });
      set(box, { fill: isQuery ? "--q" : "#0000", stroke: isKey ? "--k" : "none" });
      set(under, { visibility: masked ? "visible" : "hidden" });
    });
  };
}

/** The biases of all heads as a fan that hangs from the query; the line of this head is dragged. */
function fan(app, parent, slope, narrow) {
  const { params: p } = app, W = app.width(parent), last = p.length - 1, up = p.form === "released";
  const top = 48, deep = narrow ? 150 : 205, bars = 46, bottom = top + deep;
  const zero = bottom + bars + 16, H = zero + 44, x0 = 62, x = scale(0, last, x0, W - 18);
  const [pic, pen] = canvas(parent, W, H, speak`The bias of one query, and the weights that it leaves`);
  const y = up ? scale(-FLOOR, HIGHEST, bottom, top) : scale(-FLOOR, 0, bottom, top), unit = (y(0) - y(FLOOR)) / FLOOR;
  const name = (height, words, more = {}) => pen.text({ x: x0 - 10, y: height, ta: "end", vc: 1, ...more }, words);
  for (const v of up ? [-5, 0, 5, 10] : [0, -3, -6, -9]) {
    pen.line({ x1: x(0), x2: x(last), y1: y(v), y2: y(v), stroke: "--line", sw: v ? 1 : 2 });
    name(y(v), minus(v));
  }
  name(top - 20, speak`bias‖of a score`, { fill: "--ink", fw: 700 });
  name(zero - bars / 2 - 7, speak`weight`, { fill: "--ink", fw: 700 });
  const biggest = name(zero - bars / 2 + 10, "", { fs: 11.5 });
  pen.line({ x1: x(0), x2: x(last), y1: zero, y2: zero, stroke: "--line", sw: 2 });
  const width = Math.max(2, (x(1) - x(0)) * 0.72);
  const shares = range(p.length).map(j => pen.rect({ x: x(j) - width / 2, width, fill: "--mix", rx: Math.min(2, width / 3) }));
  const stem = pen.line({ y1: top - 8, y2: zero, stroke: "--k", sw: 2 });
  const hang = pen.line({ y1: top - 26, y2: zero, stroke: "--q", sw: 2, dash: "3 4" });
  const area = pen.rect({ x: x0 - 6, y: top - 8, width: x(last) - x0 + 12, height: zero - top + 8, fill: "#0000",
    style: "cursor:col-resize;touch-action:pan-y" });
  slide(app, area, "key", to => x.back(to.x), true);

  const lines = clipped(pic, x(0) - 1, x(last) + 1, bottom + 10), ink = pens(svg(lines, "g"));
  const floor = ink.line({ x1: x(0), x2: x(last), stroke: "--soft", sw: 1.5, dash: "5 4" });
  const penalty = up && ink.path({ fill: "none", stroke: "--mix", sw: 2, dash: "5 4" });
  const others = range(p.heads).map(() => ink.path({ fill: "none", stroke: "--mix", sw: 1.3, opacity: 0.35 }));
  const mine = ink.path({ fill: "none", stroke: "--mix", sw: 3.5, "stroke-linejoin": "round" });
  const faintly = pen.text({ halo: 1, y: 0, fs: 12, vc: 1, still: 1 }, speak`1/10,000 of its own weight`);
  const lifted = up && pen.text({ halo: 1, fill: "--mix", fw: 700, vc: 1, still: 1 });
  const spot = pen.circle({ r: 6.5, fill: "--k", rim: 1, still: 1 }), value = tag(pic, "--ink");
  const said = () => speak`${app.params.head} of ${app.params.heads}, slope ${general(slope[0][app.params.head], 3)}, horizon ${
    commas(FLOOR / slope[0][app.params.head])} tokens`;
  const handle = grip(app, pic, "mix", "head", "m", speak`head: the slope m`, said);
  const from = { q: grip(app, pic, "q", "query", "i", speak`query i`), k: grip(app, pic, "k", "key", "j", speak`key j`) };
  slide(app, from.q, "query", to => x.back(to.x));
  slide(app, from.k, "key", to => x.back(to.x));
  const order = range(p.heads).sort((a, b) => slope[0][a] - slope[0][b]);
  drag(app, handle, "head", { move(to) { // the line goes through the pointer
    const { query } = app.shown, lift = up ? slope[0][Math.round(app.shown.head)] * query : 0;
    const steep = Math.max(to.y - y(lift), 1) / unit / Math.max(query - x.back(to.x), 0.3);
    const after = order.findIndex(h => slope[0][h] >= steep), [a, b] = [order[Math.max(after - 1, 0)], order.at(after)];
    const part = clamp(Math.log(steep / slope[0][a]) / Math.log(slope[0][b] / slope[0][a] || 1) || 0, 0, 1);
    app.hold("head", Math.abs(a - b) === 1 ? a + (b - a) * part : part < 0.5 ? a : b);
  } });

  return own => {
    const { query: i, key: j } = app.shown, lift = up ? own[0] * i : 0;
    const path = (m, base) => {
      const [behind, ahead = 0] = m, over = Math.max(0, base - HIGHEST); // the line ends where the frame does
      const points = [[-1, base - (i + 1) * behind], [i - over / behind, base - over]];
      if (m.length > 1) points.push([last, base - (last - i) * ahead]);
      return "M" + points.map(([a, b]) => `${x(a).toFixed(2)} ${y(b).toFixed(2)}`).join("L");
    };
    others.forEach((line, h) => set(line, { d: path(of(slope, h), up ? slope[0][h] * i : 0) }));
    set(mine, { d: path(own, lift) });
    if (up) {
      set(penalty, { d: path(own, 0) });
      say(lifted, speak`higher by m·i = ${general(lift, 3)}: the softmax does not see it`);
      set(lifted, { x: x0 + 6, y: bottom + 12 });
    }
    const low = y(lift - FLOOR), total = range(p.length).reduce((sum, k) => sum + Math.exp(fall(k - i, own)), 0);
    set(floor, { y1: low, y2: low });
    shares.forEach((bar, k) => {
      const h = Math.max(0, Math.exp(fall(k - i, k > i && causal(p) ? [own[0], 9] : own)) * bars);
      set(bar, { y: zero - h, height: h });
    });
    say(biggest, `≤ ${(1 / total).toFixed(3)}`);
    set(hang, { x1: x(i), x2: x(i) });
    set(stem, { x1: x(j), x2: x(j) });
    const d = j - i, free = d <= 0.5 || !causal(p), at = lift + fall(Math.min(d, free ? d : 0), own);
    set(spot, { cx: x(j), cy: clamp(y(at), top - 10, bottom), visibility: free ? "visible" : "hidden" });
    value(x(j), clamp(y(at), top, bottom) - 2, free ? minus(general((up ? own[0] * Math.round(i) : 0) + fall(walked(app, j), own), 4)) : speak`masked`, W);
    // the handle stands where the line meets the frame
    const far = Math.min(FLOOR / own[0], i + 34 / (x(1) - x(0)));
    const hx = x(i - far);
    set(faintly, { x: hx > x0 + 190 ? x0 + 6 : hx + 22, y: clamp(low, top, bottom) + 13 });
    set(handle, { transform: `translate(${hx.toFixed(1)} ${clamp(y(lift - far * own[0]), top, bottom).toFixed(1)})` });
    set(from.q, { transform: `translate(${x(i)} ${top - 30})` });
    set(from.k, { transform: `translate(${x(j)} ${zero + 22})` });
  };
}

/** What each head leaves of the text: the same curve on every row, drawn once over the offset. */
function strips(app, parent, slope, narrow) {
  const { params: p } = app, W = app.width(parent), row = clamp((app.small ? 264 : 288) / p.heads, 15, 36), top = 26;
  const x0 = 92, x1 = W - (p.form === "asymmetric" ? 108 : 74), H = top + row * p.heads + 4, last = p.length - 1, x = scale(-0.5, last + 0.5, x0, x1);
  const [pic, pen] = canvas(parent, W, H, speak`All heads: slope, what they see, horizon`, app.small && { style: "font-size:15px" }), tall = Math.min(row - 4, app.small ? 26 : 20);
  pen.text({ x: 0, y: 10, vc: 1 }, speak`head`);
  pen.text({ x: x0 - 10, y: 10, vc: 1, ta: "end" }, "m");
  pen.text({ x: (x0 + x1) / 2, y: 10, vc: 1, ta: "middle" }, speak`what it sees`);
  pen.text({ x: W - 4, y: 10, vc: 1, ta: "end" }, speak`horizon`);
  const frame = pen.rect({ x: 1, width: W - 2, height: row, rx: 6, fill: "--face", stroke: "--mix", sw: 2 });
  const cells = clipped(pic, x0, x1, H + 20), wide = x(1) - x(0);
  range(p.heads).forEach(h => {
    const own = of(slope, h), cy = top + (h + 0.5) * row;
    const id = `lv${Math.random().toString(36).slice(2)}`, stops = range(61).map(k => (k - 30) / 30);
    const shade = svg(cells, "linearGradient", { id }); // finer near the query, where it falls
    for (const near of stops) {
      const d = near * Math.abs(near) * last;
      svg(shade, "stop", { offset: (d + last) / 2 / last, "stop-color": "var(--mix)", "stop-opacity": Math.exp(fall(d, own)).toFixed(3) });
    }
    svg(cells, "rect", { x: x(-last), width: 2 * last * wide, y: cy - tall / 2, height: tall, fill: `url(#${id})` });
    own.forEach((m, side) => { // a tick at its horizon
      const at = x((2 * side - 1) * FLOOR / m);
      svg(cells, "line", { x1: at, x2: at, y1: cy - tall / 2 - 4, y2: cy + tall / 2 + 4, stroke: "--mix", sw: 2.5 });
    });
    pen.rect({ x: x0, width: x1 - x0, y: cy - tall / 2, height: tall, fill: "none", stroke: "--line" });
    pen.text({ x: 6, y: cy, vc: 1, fill: "--ink" }, h);
    pen.text({ x: x0 - 10, y: cy, vc: 1, ta: "end" }, own[0] > 0.09 ? general(own[0], 3) : general(own[0], 2));
    pen.text({ x: W - 8, y: cy, vc: 1, ta: "end" }, own.map(m => commas(FLOOR / m)).filter((v, i, all) => all.indexOf(v) === i).join(" | "));
  });
  const marks = ["k", "q"].map(name => pen.line({ y1: top, y2: H - 4, stroke: `--${name}`, sw: 2, dash: name === "q" ? "3 4" : "none" }));
  const area = pen.rect({ x: 0, y: top, width: W, height: row * p.heads, fill: "#0000", style: "cursor:pointer;touch-action:pan-y" });
  const at = to => clamp(Math.floor((to.y - top) / row), 0, p.heads - 1);
  slide(app, area, "head", at, true);
  hover(app, area, to => {
    const h = at(to), [a, b] = of(slope, h).map(m => commas(FLOOR / m, 1));
    return b && b !== a ? speak`Head ${h}: 1/10,000 of its own weight after ${a} tokens, ${b} ahead`
      : speak`Head ${h}: 1/10,000 of its own weight after ${a} tokens`;
  });
  return () => {
    set(cells, { transform: `translate(${((app.shown.query) * wide).toFixed(2)} 0)` });
    set(frame, { y: top + app.shown.head * row });
    marks.forEach((mark, i) => set(mark, { x1: x(app.shown[["key", "query"][i]]), x2: x(app.shown[["key", "query"][i]]) }));
  };
}

export const alibi = {
  title: speak`ALiBi: words fade with distance`, question: speak`How far back does each head see?`,
  smooth: ["head", "query", "key"], menus: ["heads"], main: "form", slide: [],
  plays: { read: speak`read on`, heads: speak`head by head` },
  shape: ({ params: p }) => [p.heads, p.length, p.form].join(),
  scene, reached, build,
  play: (app, how, dt, now) => (how === "read" ? walk(app, "query", "key", false, 4, dt, now)
    : walk(app, "head", "key", false, 1.2, dt, now)),
};
