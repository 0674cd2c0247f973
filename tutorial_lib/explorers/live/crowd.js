// A crowd of keys: the weight of 1 that a softmax deals out, what the right key keeps of it, and longer queries.
import { canvas, clamp, commas, general, grip, hover, html, named, pens, range, say, scale, set, slide,
  speak, svg, tag, through, walk } from "./kit.js";

// ---- numbers: the same as Python's ----
const QUERIES = ["as trained", "Llama 4", "Scalable-Softmax"], MOST = 2 ** 17;
/** What a query is multiplied by when it sees n keys. */
export function factor(query, n, trained, { floor, scale: grows }) {
  if (query === "Llama 4") return 1 + grows * Math.log1p(Math.floor(n / floor));
  return query === "Scalable-Softmax" ? Math.log(n) / Math.log(trained) : 1;
}
export const share = (lead, query, n, trained, data) =>
  1 / (1 + Math.exp(Math.log(n - 1) - factor(query, n, trained, data) * lead));
/** The smallest number of keys at which the right one has less than half; 0: none up to 131,072. */
export function loses({ lead, query, trained }, data) {
  for (let n = 2; n <= MOST; n++) if (factor(query, n, trained, data) * lead < Math.log(n - 1)) return n;
  return 0;
}
const two = v => (v + 1e-9).toFixed(2), halves = new Map();
/** Up to how many keys the right one keeps half; `whole`: in a sentence of its own. */
function half(p, data, whole = false) {
  const key = [p.lead, p.query, p.trained, whole].join();
  if (!halves.has(key)) {
    const end = loses(p, data), again = end && data.parameters.keys.values.some(n => n > end && share(p.lead, p.query, n, p.trained, data) >= 0.5);
    const far = general(share(p.lead, p.query, MOST, p.trained, data), 3), [most, at] = [commas(MOST), commas(end)];
    halves.set(key, !end ? whole ? speak`up to ${most} keys the right key keeps at least half` : speak`up to ${most} keys it keeps at least half`
      : again ? whole ? speak`at ${at} keys the right key falls below half for the first time` : speak`at ${at} keys it falls below half for the first time`
        : whole ? speak`from ${at} keys on the right key has less than half, and ${far} at ${most}` : speak`from ${at} keys on it has less than half, and ${far} at ${most}`);
  }
  return halves.get(key);
}

export function scene(p, data) {
  const { query, trained, lead, keys } = p, { values } = data.parameters.keys;
  const every = QUERIES.map(each => values.map(n => share(lead, each, n, trained, data)));
  const now = every.map(row => row[values.indexOf(keys)]), own = now[QUERIES.indexOf(query)];
  const called = named("query", query, data), times = factor(query, keys, trained, data), ahead = query === QUERIES[0] ? lead : `${lead} × ${two(times)} = ${two(lead * times)}`;
  return { views: { weights: now.map(v => [v, 1 - v]), shares: [values, ...every] },
    readouts: { weights: speak`${called}, ${commas(keys)} keys: ${general(own, 3)}`, shares: speak`${commas(keys)} keys: ${general(own, 3)}` },
    description: speak`Query: ${called}. The right key's score leads by ${ahead}, and against ${
      keys === 2 ? speak`one other` : speak`${commas(keys - 1)} others`} half of the weight takes ${two(Math.log(keys - 1))}. So it keeps ${general(own, 3)} of the weight; ${half(p, data)}.` };
}
export function reached({ query, trained, lead, keys }, data) {
  const enough = Math.log(keys - 1);
  return query !== QUERIES[0] || keys < MOST || lead < enough || lead - 0.25 >= enough ? ""
    : speak`${lead} leaves it ${share(lead, query, keys, trained, data).toFixed(3)}, and ${lead - 0.25} would not do: log(${commas(keys - 1)}) is ${two(enough)}.`;
}

// ---- the picture: the right key orange, the crowd grey, what a longer query adds green or blue ----
const INK = ["--k", "--mix", "--q"], NATS = 16;
const at = app => ({ ...app.params, lead: app.shown.lead / 4, keys: 2 ** (1 + app.shown.keys) }); // what is shown

function build(app, stage) {
  const narrow = stage.clientWidth < 600, two_ = html(stage, "div", { class: `lv-two${narrow ? " lv-one" : ""}` });
  const size = { narrow, top: app.small ? 76 : 64, high: app.small ? 138 : narrow ? 190 : 290 };
  const parts = [dealt(app, html(two_, "div"), size), curves(app, html(two_, "div"), size)];
  const lesson = html(stage, "p", { class: "lv-lesson" });
  return () => {
    const now = at(app), own = share(now.lead, now.query, now.keys, now.trained, app.data);
    parts.forEach(paint => paint(now, own));
    const called = named("query", app.params.query, app.data);
    say(lesson, speak`${called[0].toUpperCase() + called.slice(1)}: ${half(app.params, app.data, true)}.`);
  };
}

/** Left: by how much the right key leads, and what it needs for half of the weight. Beside it the weight of 1, as an area. */
function dealt(app, parent, { narrow, top, high }) {
  const { params: p, data } = app, W = app.width(parent), bottom = top + high, y = scale(0, NATS, bottom, top);
  const [pic, pen] = canvas(parent, W, bottom + 48, speak`The lead of the right key, and the weight of 1 that is dealt out`);
  const x0 = 28, split = Math.round(W * 0.56), room = (split - x0) / 2, wide = Math.min(44, room * 0.6);
  const [mine, theirs] = [0.5, 1.5].map(n => x0 + n * room);
  pen.text({ x: 0, y: 13, fill: "--ink", fw: 700 }, app.small ? speak`scores` : speak`scores, in nats`);
  for (const v of [0, 5, 10, 15]) {
    pen.line({ x1: x0, x2: split - 6, y1: y(v), y2: y(v), stroke: "--line", sw: v ? 1 : 2 });
    pen.text({ x: x0 - 8, y: y(v), ta: "end", vc: 1 }, v);
  }
  const foot = (x, fill, words, more = {}) => words.map((word, n) => pen.text({ x, y: bottom + 19 + 17 * n, ta: "middle", fill, fw: n ? 400 : 700, ...more }, word));
  foot(mine, "--k", [speak`lead`, speak`right key`].slice(0, app.small ? 1 : 2));
  foot(theirs, "--soft", ["log(n − 1)", speak`for half`].slice(0, app.small ? 1 : 2));
  const bar = (x, fill, more = {}) => pen.rect({ x: x - wide / 2, width: wide, fill, ...more });
  const crowd = bar(theirs, "--soft", { opacity: 0.55 }), longer = bar(mine, INK[QUERIES.indexOf(p.query)]), lead = bar(mine, "--k");
  const missing = bar(mine, "none", { stroke: "--k", sw: 1.5, dash: "4 4" });
  const line = pen.line({ x1: x0, x2: theirs + wide / 2, stroke: "--soft", sw: 2, dash: "5 4" });
  const says = [[mine, "--ink"], [theirs, "--soft"], [mine, INK[QUERIES.indexOf(p.query)]]].map(([x, fill]) => pen.text({ halo: 1, x, ta: "middle", fill, fw: 700, fs: 14, still: 1 }));
  const area = pen.rect({ x: mine - room / 2, width: room, y: top, height: high, fill: "#0000", style: "cursor:ns-resize;touch-action:pan-x" });
  const handle = grip(app, pic, "k", "lead", "Δ", speak`lead Δ of the right key's score`, () => speak`${app.params.lead} nats`);
  for (const node of [area, handle]) slide(app, node, "lead", to => 4 * y.back(to.y), node === area);

  const left = split + 18, cw = W - left - 2;
  pen.text({ x: left, y: 13, fill: "--ink", fw: 700 }, app.small ? speak`weights` : speak`the weight of 1`);
  const others = pen.rect({ x: left, width: cw, fill: "--soft", opacity: 0.42 });
  const gaps = pen.path({ fill: "none", stroke: "--paper" });
  const right = pen.rect({ x: left, width: cw, fill: "--k" });
  pen.rect({ x: left, width: cw, y: top, height: high, fill: "none", stroke: "--soft", sw: 1.5 });
  const count = pen.text({ x: left + cw / 2, y: top - 9, ta: "middle", fs: narrow ? 12 : 13 });
  const [kept] = foot(left + cw / 2, "--k", [""]);
  if (!app.small) pen.text({ x: left + cw / 2, y: bottom + 36, ta: "middle" }, speak`for the right key`);

  return (now, own) => {
    const times = factor(p.query, now.keys, p.trained, data), ahead = times * now.lead, need = Math.log(now.keys - 1);
    const base = y(Math.min(now.lead, ahead)), end = y(Math.min(ahead, NATS));
    set(lead, { y: base, height: bottom - base });
    set(longer, { y: end, height: Math.max(0, base - end) });
    set(missing, { y: y(now.lead), height: Math.max(0, base - y(now.lead)), visibility: times < 1 ? "visible" : "hidden" });
    set(crowd, { y: y(need), height: bottom - y(need) });
    set(line, { y1: y(need), y2: y(need) });
    set(handle, { transform: `translate(${mine} ${y(now.lead).toFixed(1)})` });
    const tall = Math.min(end, y(now.lead) - 13);
    say(says[0], `${ahead > NATS ? "↑ " : ""}${two(ahead)}`);
    say(says[2], p.query === QUERIES[0] ? "" : `× ${two(times)}`);
    say(says[1], two(need));
    const above = Math.abs(tall - 11 - y(need)) < 12 ? y(need) - 6 : tall - 6; // not on the dashed line
    set(says[0], { y: above });
    set(says[2], { y: above - 17 });
    set(says[1], { y: y(need) - 6, visibility: need < -0.1 ? "hidden" : "visible" });
    // all cells have the same area: the weight of one key
    const edge = top + (1 - own) * high, many = Math.round(now.keys) - 1, room_ = (1 - own) * high;
    set(right, { y: edge, height: bottom - edge });
    set(others, { y: top, height: Math.max(0, room_) });
    const side = Math.sqrt(cw * room_ / many);
    set(gaps, { "stroke-width": clamp(side / 8, 0, 1.4).toFixed(2), d: side < 3 || many === 1 ? "" : cells(many, left, top, cw, room_) });
    say(count, app.small || narrow && W < 300 ? commas(many) : many === 1
      ? speak`1 other: ${(1 - own).toFixed(3)}` : speak`${commas(many)} others: ${(1 - own).toFixed(3)}`);
    say(kept, own < 5e-4 ? general(own, 2) : own.toFixed(3));
  };
}
/** Lines between `many` cells of one size, in rows: the last rows may have one more. */
function cells(many, left, top, wide, high) {
  const rows = clamp(Math.round(Math.sqrt(many * high / wide)), 1, many);
  let d = "", from = top, done = 0;
  for (const row of range(rows)) {
    const here = Math.round((row + 1) * many / rows) - done, tall = high * here / many;
    if (row) d += `M${left} ${from.toFixed(1)}h${wide}`;
    for (let n = 1; n < here; n++) d += `M${(left + wide * n / here).toFixed(1)} ${from.toFixed(1)}v${tall.toFixed(1)}`;
    from += tall;
    done += here;
  }
  return d;
}

/** Over the number of keys, on a logarithmic axis: three queries, and the handle of the number. */
function curves(app, parent, { narrow, top: above, high }) {
  const aside = narrow || (app.small && W < 700), top = above + (narrow ? 14 : 0), bottom = top + high;
  const { params: p, data, table } = app, W = app.width(parent), which = QUERIES.indexOf(p.query);
  const [pic, pen] = canvas(parent, W, bottom + 48, speak`What the right key keeps, over the number of keys`);
  const x0 = 34, x = scale(1, 17, x0, W - (aside ? 14 : 136)), y = scale(0, 1, bottom, top);
  pen.text({ x: 0, y: 13, fill: "--ink", fw: 700 }, speak`what the right key keeps`);
  for (const v of [0, 0.25, 0.5, 0.75, 1]) {
    pen.line({ x1: x(1), x2: x(17), y1: y(v), y2: y(v), stroke: v === 0.5 ? "--soft" : "--line", sw: v ? 1 : 2, dash: v === 0.5 ? "5 4" : "none" });
    if (v % 0.5 === 0) pen.text({ x: x0 - 8, y: y(v), ta: "end", vc: 1, fill: v === 0.5 ? "--ink" : "--soft" }, v === 0.5 ? "½" : v);
  }
  for (const power of W < 420 ? [1, 4, 7, 10, 13, 16] : [1, 4, 7, 10, 13, 17]) {
    pen.text({ x: x(power), y: bottom + 19, ta: "middle", fs: W < 420 ? 11.5 : 13 }, commas(2 ** power));
  }
  const learned = x(Math.log2(p.trained));
  pen.line({ x1: learned, x2: learned, y1: top, y2: bottom + 5, stroke: "--ink", sw: 1.5, dash: "2 4" });
  pen.text({ x: learned, y: bottom + 36, ta: "middle", fill: "--ink", fw: 700 }, speak`in training`);
  pen.text({ x: p.trained > 99 ? x(1) - 8 : x(17), y: bottom + 36, ta: p.trained > 99 ? "start" : "end" }, speak`keys n`);

  const stem = pen.line({ y1: top - 12, y2: bottom, stroke: "--soft", sw: 2 });
  const area = pen.rect({ x: x0 - 6, width: x(17) - x0 + 12, y: top - 6, height: high + 30, fill: "#0000", style: "cursor:col-resize;touch-action:pan-y" });
  slide(app, area, "keys", to => x.back(to.x) - 1, true);
  const steps = range(MOST / data.floor).flatMap(n => [(n + 1) * data.floor * (1 - 1e-9), (n + 1) * data.floor]);
  const points = [...range(129).map(n => 2 ** (1 + n / 8)), ...steps].sort((a, b) => a - b);
  const order = [0, 1, 2].sort((a, b) => (a === which) - (b === which)), inks = pens(svg(pic, "g", { still: 1 }));
  const lines = order.map(n => [n, inks.path({ fill: "none", stroke: INK[n], "stroke-linejoin": "round", cap: 1, sw: n === which ? 3.5 : 2,
    opacity: n === which ? 1 : 0.75, dash: ["none", "7 5", "1 5"][n === which ? 0 : n] })]);
  const names = QUERIES.map((text, n) => pen.text({ halo: 1, fill: INK[n], fw: n === which ? 700 : 400, still: 1, vc: 1, fs: W < 420 ? 12 : 13 }, table.query.texts[n]));
  if (aside) names.forEach((text, n) => set(text, { x: [0, W / 2 - 34, W][n], ta: ["start", "middle", "end"][n], y: 32 }));
  const spot = pen.circle({ r: 6.5, fill: INK[which], rim: 1, still: 1 }), value = tag(pic, INK[which]);
  const handle = grip(app, pic, "soft", "keys", "n", speak`number of keys n`, () => {
    const own = share(app.params.lead, p.query, app.params.keys, p.trained, data);
    return speak`${commas(app.params.keys)} keys, the right one keeps ${general(own, 3)}`;
  });
  slide(app, handle, "keys", to => x.back(to.x) - 1);
  hover(app, area, to => {
    const n = table.keys.values[clamp(Math.round(x.back(to.x)) - 1, 0, 16)];
    return speak`${commas(n)} keys: ${QUERIES.map((query, i) => `${table.query.texts[i]} ${general(share(app.params.lead, query, n, p.trained, data), 3)}`).join(speak`, `)}`;
  });

  return (now, own) => {
    const log = n => x(Math.log2(n));
    for (const [n, path] of lines) set(path, { d: through(points, log, y, v => share(now.lead, QUERIES[n], v, p.trained, data)) });
    if (!aside) { // at the ends of the lines, at least one line of text apart
      const ends = QUERIES.map((query, n) => [y(share(now.lead, query, MOST, p.trained, data)), n]).sort((a, b) => b[0] - a[0] || a[1] - b[1]);
      ends.reduce((below, [height, n]) => {
        const place = Math.min(height, below - 17);
        set(names[n], { x: x(17) + 9, y: place.toFixed(1) });
        return place;
      }, bottom + 17);
    }
    const here = log(now.keys);
    set(stem, { x1: here, x2: here });
    set(spot, { cx: here, cy: y(own) });
    value(here, clamp(y(own), top + 12, bottom - 12), own < 5e-4 ? general(own, 2) : own.toFixed(3), aside ? W : x(17) + 8);
    set(handle, { transform: `translate(${here.toFixed(1)} ${top - 20})` });
  };
}

export const crowd = {
  title: speak`A softmax and its crowd`, question: speak`Does the right key stand out as the crowd grows?`,
  smooth: ["lead", "keys"], slide: ["query"],
  plays: { grow: speak`the crowd grows` },
  shape: ({ params: p }) => [p.query, p.trained].join(),
  scene, reached, build,
  play: (app, how, dt, now) => walk(app, "keys", "keys", false, 2.2, dt, now),
};
