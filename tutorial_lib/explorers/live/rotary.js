// RoPE: a pair of q and k as hands of a dial; positions, score, and all other pairs move with it.
import { TAU, arrow, axes, below, canvas, chooser, clamp, clipped, commas, drag, general, grip, hover,
  html, minus, named, pens, range, say, scale, set, slide, speak, spiral, svg, tag, through, ticks, walk,
  wedge, wrapped } from "./kit.js";

const DEG = 180 / Math.PI;

// ---- numbers: the same as Python's ----
/** How many pairs turn, the fastest first. */
export const turning = ({ pairs, turning: how }) => (how === "all" ? pairs : pairs >> 1);
export function theta(t, p) {
  const of = p.turning === "partial" ? 2 * turning(p) : 2 * p.pairs;
  return t < turning(p) ? p.base ** (-2 * t / of) : 0;
}
export function channels(t, p) {
  let pairs = p.pairs, from = 0;
  if (p.turning === "partial") {
    const first = pairs >> 1;
    if (t >= first) {
      from = 2 * first;
      t -= first;
      pairs -= first;
    } else pairs = first;
  }
  return (p.layout === "interleaved" ? [2 * t, 2 * t + 1] : [t, t + pairs]).map(c => c + from);
}
const turn = ([x, y], a) => [x * Math.cos(a) - y * Math.sin(a), x * Math.sin(a) + y * Math.cos(a)];
const dot = ([a, b], [c, d]) => a * c + b * d;

/** q and k of a pair before they turn. */
export function contents(t, p, { q, k, start }) {
  const own = channels(t, p), a = own.map(c => q[c]);
  if (p.content === "random") return [a, own.map(c => k[c])];
  return [a, p.content === "alike" ? a : turn(a, (start.m - start.n) * theta(t, p))];
}
export function score(m, n, t, p, data) {
  const [q, k] = contents(t, p, data), w = theta(t, p);
  return dot(turn(q, m * w), turn(k, n * w));
}
export const total = (m, n, p, data) => range(p.pairs).reduce((sum, t) => sum + score(m, n, t, p, data), 0);
const degrees = a => Math.atan2(Math.sin(a), Math.cos(a)) * DEG;

export function scene(p, data) {
  const { m, n, pairs, pair, base, layout, view } = p, w = theta(pair, p), [a, b] = channels(pair, p);
  const [q, k] = contents(pair, p, data), step = w * DEG, many = turning(p);
  const keys = range(data.parameters.n.size), ends = [turn(q, m * w), turn(k, n * w), q, k];
  const plane = [ends.map(e => e[0]), ends.map(e => e[1])], all = keys.map(j => total(m, j, p, data));
  let beside, seen;
  if (view === "score") {
    beside = [keys, all, keys.map(j => score(m, j, pair, p, data))];
    seen = speak`the scores with all keys; the largest is at n = ${all.indexOf(Math.max(...all))}`;
  } else if (view === "angles") {
    const turns = x => range(pairs).map(t => degrees(x * theta(t, p)));
    beside = [range(pairs), turns(m), turns(n), turns(n - m)];
    seen = speak`the angles of all pairs; pair 0 makes a turn in ${(TAU / theta(0, p)).toFixed(1)} positions, pair ${
      many - 1} in ${commas(TAU / theta(many - 1, p), 1)}`;
  } else {
    beside = range(2 * pairs).map(() => Array(2 * pairs).fill(0));
    for (const t of range(pairs)) {
      const [i, j] = channels(t, p), c = t < many ? Math.SQRT1_2 : 1, s = t < many ? Math.SQRT1_2 : 0;
      Object.assign(beside[i], { [i]: c, [j]: -s });
      Object.assign(beside[j], { [i]: s, [j]: c });
    }
    seen = w ? speak`the rotation as a matrix, in which channels ${a} and ${b} are mixed`
      : speak`the rotation as a matrix, in which channels ${a} and ${b} stay as they are`;
  }
  const far = n - m, was = data.start.n - data.start.m;
  const between = far < 0 ? speak`${-far} before the query` : far > 0 ? speak`${far} after the query` : speak`at the place of the query`;
  const result = !w ? speak`Pair ${pair} does not turn: wherever q and k stand, the angle between them stays.` : far !== was ? speak`The key stands ${between}, at first it was ${-was} before it: another distance, so another angle and another score.`
    : m === data.start.m ? speak`A query at ${m}, a key at ${n}: each turns with its own place, and neither sees the other.`
      : speak`Same distance, same angle, same score: both have moved by ${Math.abs(m - data.start.m)}.`;
  const still = { all: "", partial: speak`, only the first ${2 * many} of ${2 * pairs} channels turn`,
    "p-RoPE": speak`, only the fastest ${many} of ${pairs} pairs turn` }[p.turning];
  return { views: { plane, beside }, result, description:
    speak`Query at ${m}, key at ${n}, ${named("layout", layout, data)} layout, base ${base}${still}: in pair ${pair} q has turned by ${
      (m * step).toFixed(1)}° and k by ${(n * step).toFixed(1)}°, lengths stay as they are; the score of all pairs is ${
      total(m, n, p, data).toFixed(4)}, and would be at any two positions with n − m = ${n - m}; beside it ${seen}.` };
}
export function reached(p, data) {
  const { start, late, same } = data, now = total(p.m, p.n, p, data);
  if (p.m < late || Math.abs(now - total(start.m, start.n, p, data)) > same) return "";
  return speak`q·k is ${now.toFixed(4)} with m = ${p.m} and n = ${p.n}, as with m = ${start.m} and n = ${start.n}: n − m is ${
    p.n - p.m} both times.`;
}

// ---- the picture ----
const polar = ([x, y]) => [Math.hypot(x, y), Math.atan2(y, x)];

function build(app, stage) {
  const { params: p, data } = app, narrow = stage.clientWidth < (app.small === "toy" ? 560 : 600);
  const two = html(stage, "div", { class: `lv-two${narrow ? " lv-one" : ""}` });
  const left = html(two, "div"), right = html(two, "div");
  right.append(app.playbar); // beside what it moves
  const parts = [dial(app, left), rails(app, right, narrow)];
  if (!app.small) parts.push(strip(app, html(stage, "div"), narrow));
  return () => {
    const { m, n } = app.shown, t = p.pair, [q, k] = contents(t, p, data);
    parts.forEach(paint => paint({ m, n, t, w: theta(t, p), q: polar(q), k: polar(k) }));
  };
}

/** One pair: pale before it turns, full after; a bead for each position on the way, the angle between them in green. */
function dial(app, parent) {
  const { params: p } = app, W = Math.min(app.width(parent), app.small ? 300 : 330), c = W / 2;
  const H = W * 0.96, cy = H / 2;
  const longest = Math.max(1, ...contents(p.pair, p, app.data).map(v => Math.hypot(...v)));
  const R = H / 2 / (longest + 0.16);
  const [pic, pen] = canvas(parent, W, H, speak`q and k of one pair, before and after they turn`,
    { style: `max-width:${app.grow * W}px;margin:auto` });
  pen.circle({ cx: c, cy, r: R, fill: "--face", stroke: "--line", sw: 1.5 });
  for (const i of range(36)) {
    const a = i * TAU / 36, r = i % 3 ? R - 4 : R - 8;
    pen.line({ x1: c + r * Math.cos(a), y1: cy - r * Math.sin(a), x2: c + R * Math.cos(a),
      y2: cy - R * Math.sin(a), stroke: "--line", sw: i % 9 ? 1 : 2 });
  }
  pen.path({ d: `M${c - R} ${cy}H${c + R}M${c} ${cy - R}V${cy + R}`, stroke: "--line" });
  const own = channels(p.pair, p), small = { fs: 11.5, halo: 1 };
  if (!app.small) {
    pen.text({ x: c + R - 4, y: cy + 14, ta: "end", ...small }, speak`channel ${own[0]}`);
    pen.text({ x: c + 5, y: cy - R + 14, ...small }, speak`channel ${own[1]}`);
  }
  const between = pen.path({ fill: "--mix2" }), rim = pen.path({ fill: "none", stroke: "--mix", sw: 3 });
  const parts = {};
  for (const name of ["k", "q"]) {
    const colour = `--${name}`, pale = `--${name}2`, part = parts[name] = {};
    part.arc = pen.path({ fill: "none", stroke: colour, sw: 1.5, cap: 1, opacity: 0.75 });
    part.beads = pen.path({ fill: "none", stroke: colour, sw: 4.5, cap: 1 });
    part.before = [pen.path({ stroke: pale, sw: 4 }), pen.path({ fill: pale })];
  }
  for (const [name, at] of [["k", "n"], ["q", "m"]]) {
    const colour = `--${name}`, part = parts[name];
    part.name = pen.text({ halo: 1, mid: 1, fill: colour, opacity: 0.8 }, name);
    const hand = pen.g({ class: "lv-hand" });
    part.after = [svg(hand, "path", { stroke: colour, sw: 5, cap: 1 }), svg(hand, "path", { fill: colour })];
    part.spots = [svg(hand, "circle", { r: 17, class: "lv-ring" }), svg(hand, "circle", { r: 24, fill: "#0000" })];
    part.label = svg(hand, "text", { halo: 1, mid: 1, fill: colour, fw: 700, fs: 16, still: 1 });
    const look = to => Math.atan2(cy - to.y, to.x - c);
    let before = 0, value = 0;
    drag(app, hand, at, {
      down: to => { before = look(to); value = app.shown[at]; },
      move(to) { // turns are counted: one more is 2π/θ positions more
        const now = look(to), w = theta(p.pair, p);
        if (w) value = clamp(value + wrapped(now - before) / w, 0, app.size(at) - 1);
        before = now;
        app.hold(at, value);
      },
    });
  }
  pen.circle({ cx: c, cy, r: 4.5, fill: "--ink" });
  const angle = pen.text({ halo: 1, mid: 1, fill: "--mix", fw: 700, fs: 17, still: 1 });
  const sums = html(app.small ? null : parent, "div", { class: "lv-sums" });
  const cells = ["q", "k", "mix"].flatMap(colour => ["b", "span", "span"].map(tagName =>
    html(sums, tagName, { style: `color:var(--${colour})` })));

  return ({ m, n, t, w, q, k }) => {
    const on = (r, a) => [c + r * R * Math.cos(a), cy - r * R * Math.sin(a)];
    for (const [name, [r, from], x, room] of [["q", q, m, [0.64, 0.86]], ["k", k, n, [0.38, 0.56]]]) {
      const part = parts[name], to = from + x * w, last = clamp(room[0] + 0.06 * x * w / TAU, 0, room[1]);
      const slope = (last - room[0]) / (x || 1);
      set(part.arc, { d: x * w > 1e-4 ? spiral(c, cy, room[0] * R, last * R, from, to) : "" });
      set(part.beads, { d: w * R > 9 ? range(Math.floor(x + 1e-6) + 1).map(i => {
        const [px, py] = on(room[0] + slope * i, from + i * w);
        return `M${px.toFixed(1)} ${py.toFixed(1)}h0`;
      }).join("") : "" });
      for (const [pieces, a, size] of [[part.before, from, 13], [part.after, to, 17]]) {
        const drawn = arrow(c, cy, ...on(r, a), size);
        set(pieces[0], { d: drawn.line });
        set(pieces[1], { d: drawn.head });
      }
      const [hx, hy] = on(r, to), [lx, ly] = on(r + 0.13, to), [bx, by] = on(r + 0.1, from);
      part.spots.forEach(spot => set(spot, { cx: hx, cy: hy }));
      set(part.label, { x: lx, y: ly });
      say(part.label, `${name}′`);
      set(part.name, { x: bx, y: by, visibility: Math.hypot(bx - lx, by - ly) < 22 ? "hidden" : "visible" });
    }
    const tilt = q[1] - k[1], gap = wrapped(tilt + (m - n) * w), from = k[1] + n * w, far = 0.24 * R;
    const tight = Math.abs(gap) < 0.7, mid = from + gap / 2 + (tight ? Math.PI : 0), out = tight ? 0 : far;
    set(between, { d: wedge(c, cy, far, from, from + gap) });
    set(rim, { d: spiral(c, cy, far, far, from, from + gap) });
    set(angle, { x: c + (out + 28) * Math.cos(mid), y: cy - (out + 20) * Math.sin(mid) });
    say(angle, `${minus((gap * DEG).toFixed(0))}°`);
    const M = Math.round(m), N = Math.round(n), step = `${general(w * DEG, 4)}°`;
    const f = a => `= ${minus((a * DEG).toFixed(1))}°`, sign = M < N ? "−" : "+";
    const start = `${minus((wrapped(tilt) * DEG).toFixed(1))}°`;
    const said = w ? [
      speak`q turns`, `m·θ = ${M} × ${step}`, f(M * w), speak`k turns`, `n·θ = ${N} × ${step}`, f(N * w),
      speak`between`, `${start} ${sign} ${Math.abs(M - N)} × ${step}`, f(wrapped(tilt + (M - N) * w))]
      : [speak`q stays`, speak`θ = 0: this pair`, "", speak`k stays`, speak`knows no position`, "", speak`between`, speak`always`, f(wrapped(tilt))];
    said.forEach((text, i) => say(cells[i], text));
  };
}

/** Positions on two rails; below them, on the same x, the score with each key. */
function rails(app, parent, narrow) {
  const { params: p, data } = app, W = app.width(parent), H = app.small ? 255 : narrow ? 300 : 345;
  const [queries, keys] = [app.size("m"), app.size("n")], left = 70;
  const x = scale(0, queries - 1, left, W - 18);
  const [pic, pen] = canvas(parent, W, H, speak`Positions of query and key, and the score below them`);
  const rowQ = 22, rowK = 76, mid = (rowQ + rowK) / 2, top = 112, bottom = H - 38;
  const gap = pen.path({ stroke: "--mix", sw: 3, fill: "none" });
  const gapText = pen.text({ halo: 1, y: mid, vc: 1, fill: "--mix", fw: 700, fs: 15 });
  const grips = {}, follow = {};
  for (const [name, at, y, count] of [["q", "m", rowQ, queries], ["k", "n", rowK, keys]]) {
    const rail = pen.g();
    svg(rail, "rect", { x: x(0) - 9, width: x(count - 1) - x(0) + 18, y: y - 16, height: 32, fill: "#0000",
      style: "cursor:pointer" });
    svg(rail, "line", { x1: x(0), x2: x(count - 1), y1: y, y2: y, stroke: `--${name}2`, sw: 3, cap: 1 });
    for (const i of range(count).filter(v => v % 10 === 0))
      svg(rail, "line", { x1: x(i), x2: x(i), y1: y - 5, y2: y + 5, stroke: `--${name}2`, sw: 2 });
    slide(app, rail, at, to => x.back(to.x), true);
    follow[name] = pen.text({ x: 0, y, vc: 1, fill: `--${name}`, fw: 700, fs: 16 });
    grips[name] = grip(app, pic, name, at, name, name === "q" ? speak`query position m` : speak`key position n`, () =>
      speak`${app.params[at]}, ${name} has turned by ${(app.params[at] * theta(p.pair, p) * DEG).toFixed(1)}°`);
    slide(app, grips[name], at, to => x.back(to.x));
  }
  // So that the axis stands still when positions move.
  const every = range(p.pairs).map(t => {
    const [q, k] = contents(t, p, data).map(polar);
    return [q[0] * k[0], q[1] - k[1], theta(t, p)];
  });
  const of = (d, t) => every[t][0] * Math.cos(every[t][1] + d * every[t][2]);
  const sum = d => every.reduce((so, _, t) => so + of(d, t), 0);
  const offsets = range(queries + keys - 1).map(i => i - keys + 1);
  const reach = [0, ...offsets.flatMap(d => [sum(d), of(d, p.pair)])];
  const lo = Math.min(...reach), hi = Math.max(...reach), room = 0.08 * (hi - lo);
  const y = scale(lo - room, hi + room, bottom, top);
  axes(pic, x, y, [0, 8, 16, 24, 32], ticks(lo - room, hi + room, 5), speak`key position n`, bottom);
  pen.text({ x: left - 10, y: top - 2, ta: "end", fill: "--ink", fw: 700 }, "q·k");
  const ends = [[speak`all`, "--ink"], [speak`pair ${p.pair}`, "--mix"]].map(([text, fill]) =>
    pen.text({ x: x(keys - 1) + 8, vc: 1, fill, fw: 700 }, text)); // a line has its name at its end
  const here = pen.line({ y1: rowQ + 14, y2: bottom, stroke: "--q2", sw: 2, dash: "3 4" });
  const area = pen.rect({ x: x(0) - 8, y: top, width: x(keys - 1) - x(0) + 16, height: bottom - top,
    fill: "#0000", style: "cursor:col-resize;touch-action:pan-y" });
  // Drawn once, over the offset: when m moves, the curve only slides. That is what relative means.
  const curve = clipped(pic, x(0) - 1, x(keys - 1) + 1, H + 9);
  const fine = range(6 * (keys + queries - 2) + 1).map(i => i / 6 - queries + 1);
  svg(curve, "path", { d: through(fine, x, y, v => of(-v, p.pair)), fill: "none", stroke: "--mix", sw: 2 });
  svg(curve, "path", { d: through(fine, x, y, v => sum(-v)), fill: "none", stroke: "--ink", sw: 2.5 });
  svg(curve, "path", { d: range(queries + keys - 1).map(i => i - queries + 1)
    .map(v => `M${x(v).toFixed(1)} ${y(sum(-v)).toFixed(1)}h0`).join(""),
  fill: "none", stroke: "--ink", sw: 5, cap: 1 });
  const cursor = pen.g();
  const stem = svg(cursor, "line", { stroke: "--k", sw: 2, y1: rowK + 15, y2: bottom });
  const grab = svg(cursor, "rect", { x: -14, y: top, width: 28, height: bottom - top, fill: "#0000" });
  const onPair = svg(cursor, "circle", { r: 5.5, fill: "--mix", rim: 1 });
  const onAll = svg(cursor, "circle", { r: 7, fill: "--ink", rim: 1 });
  const value = tag(pic, "--ink");
  for (const node of [area, cursor]) slide(app, node, "n", to => x.back(to.x), true);
  hover(app, area, to => {
    const n = Math.round(x.back(to.x)), d = Math.round(app.shown.m) - n;
    return n >= 0 && n < keys && speak`n = ${n}: q·k ${minus(sum(d).toFixed(4))}, pair ${p.pair} ${minus(of(d, p.pair).toFixed(4))}`;
  });
  pic.append(grips.q, grips.k);
  set(grab, { style: "cursor:grab;touch-action:pan-y" });

  return ({ m, n }) => {
    const M = Math.round(m), N = Math.round(n), s = sum(m - n), [e0, e1] = [y(sum(m - keys + 1)), y(of(m - keys + 1, p.pair))];
    set(curve, { transform: `translate(${(x(m) - x(0)).toFixed(2)} 0)` });
    const push = Math.max(0, 16 - Math.abs(e0 - e1)) / 2 * (e0 < e1 ? 1 : -1);
    set(ends[0], { y: e0 - push });
    set(ends[1], { y: e1 + push });
    set(grips.q, { transform: `translate(${x(m)} ${rowQ})` });
    set(grips.k, { transform: `translate(${x(n)} ${rowK})` });
    set(gap, { d: `M${x(n)} ${rowK - 15}V${mid}H${x(m)}V${rowQ + 15}` });
    const far = Math.max(x(m), x(n)), wide = Math.abs(x(m) - x(n)) > 150;
    const side = far > W - 135 ? [Math.min(x(m), x(n)) - 12, "end"] : [far + 12, "start"];
    set(gapText, { y: wide ? mid - 11 : mid, x: wide ? (x(m) + x(n)) / 2 : side[0], ta: wide ? "middle" : side[1] });
    say(gapText, `r = n − m = ${minus(N - M)}`);
    say(follow.q, `m = ${M}`);
    say(follow.k, `n = ${N}`);
    set(here, { x1: x(m), x2: x(m) });
    set(cursor, { transform: `translate(${x(n)} 0)` });
    set(stem, { y1: rowK + 15 });
    set(onPair, { cy: y(of(m - n, p.pair)) });
    set(onAll, { cy: y(s) });
    value(x(n), top - 5, minus(s.toFixed(4)), W); // above the curves, beside what names the axis
  };
}

/** All pairs as clocks; threads lead to the channels that each is made of. */
function strip(app, parent, narrow) {
  const { params: p, data } = app, W = parent.clientWidth, x0 = narrow ? 0 : 70, wide = (W - x0) / p.pairs;
  const R = clamp(wide * 0.44, 4, 25), cy = R + 7, number = wide > 40, named = wide > 2 * R + 150;
  const yPart = 2 * R + 25, y0 = 2 * R + (number ? 38 : 18), y1 = y0 + 32, tall = 30, H = y1 + tall + (narrow ? 34 : 16);
  const [pic, pen] = canvas(parent, W, H, speak`All pairs, and the channels that they are made of`, { class: "lv-strip" });
  set(pic, { role: "radiogroup" });
  const rows = [[speak`pairs‖name of a row`, cy, -6], [number ? speak`add up` : "", yPart, -99], [speak`channels`, y1 + tall / 2, H - 8]];
  if (narrow) set(pic, { viewBox: `0 -18 ${W} ${H + 18}` }); // the names stand above the rows
  for (const [words, beside, above] of rows) if (!narrow || above > -99) pen.text({ x: 0, y: narrow ? above : beside, halo: 1, vc: 1 }, words);
  const cell = (W - x0) / (2 * p.pairs), threads = [], size = Math.min(tall / 2 / 1.15, 13);
  const place = c => x0 + (c + 0.5) * cell;
  const chosen = pen.rect({ y: 1, height: y0 - 3, rx: 9, fill: "--face", stroke: "--mix", sw: 2 });
  for (const t of range(p.pairs)) for (const s of [0, 1]) {
    const own = t === p.pair;
    threads.push([t, s, pen.path({ fill: "none", stroke: own ? "--mix" : "--soft", sw: own ? 3 : 1.2, cap: 1,
      opacity: own ? 1 : 0.55, dash: t < turning(p) ? "none" : "2 4" })]);
  }
  const boxes = range(2 * p.pairs).map(c => {
    const own = channels(p.pair, p).includes(c), w = Math.min(cell - 2, 34);
    pen.rect({ x: place(c) - w / 2, y: y1, width: w, height: tall, rx: 4, fill: "--face",
      stroke: own ? "--mix" : "--line", sw: own ? 2 : 1 });
    pen.line({ x1: place(c) - w / 2 + 2, x2: place(c) + w / 2 - 2, y1: y1 + tall / 2, y2: y1 + tall / 2, stroke: "--line" });
    if (cell > 13) pen.text({ x: place(c), y: y1 + tall + 13, ta: "middle", fs: 11 }, c);
    const bar = Math.min(w * 0.3, 8);
    return ["q", "k"].map((name, i) => pen.rect({ x: place(c) + (i ? 1 : -1 - bar), width: bar, fill: `--${name}` }));
  });
  const clocks = range(p.pairs).map(t => {
    const g = pen.g({ class: "lv-clock" }), own = pens(g), cx = x0 + (t + 0.5) * wide;
    own.rect({ x: cx - wide / 2 + 2, y: 1, width: wide - 4, height: y0 - 3, rx: 9, class: "lv-hit" });
    own.circle({ cx, cy, r: R, fill: "--paper", stroke: "--line" });
    const between = own.path({ fill: "--mix2" });
    const hands = ["k", "q"].map(name => [own.path({ stroke: `--${name}`, sw: clamp(R / 9, 1.2, 2.6), cap: 1 }),
      own.path({ fill: `--${name}` })]);
    const part = number && own.text({ x: cx, y: yPart, mid: 1, fs: wide > 60 ? 13 : 11, fill: "--mix", fw: 700 });
    if (named) own.text({ x: cx + R + 5, y: cy + 4, fs: 11 }, theta(t, p) ? `θ${below(t)} = ${general(theta(t, p) * DEG, 3)}°` : `θ${below(t)} = 0`);
    hover(app, g, () => {
      const w = theta(t, p), s = minus(score(Math.round(app.shown.m), Math.round(app.shown.n), t, p, data).toFixed(4));
      return w ? speak`Pair ${t} turns by ${general(w * DEG, 4)}° a position, once in ${commas(TAU / w, 1)}; it adds ${s}`
        : speak`Pair ${t} does not turn; it adds ${s} at any positions`;
    });
    return { g, t, cx, between, hands, part };
  });
  chooser(app, clocks.map(clock => clock.g), "pair", t =>
    speak`pair ${t}, its part of the score ${score(app.params.m, app.params.n, t, p, data).toFixed(2)}`);

  return ({ m, n, t: own }) => {
    const left = app.glide("chosen", x0 + own * wide + 2);
    set(chosen, { x: left, width: wide - 4 });
    for (const { t, cx, between, hands, part } of clocks) {
      const w = theta(t, p), [q, k] = contents(t, p, data), ends = [turn(k, n * w), turn(q, m * w)];
      const [b, a] = ends.map(([vx, vy]) => Math.atan2(vy, vx));
      hands.forEach(([line, head], i) => {
        const drawn = arrow(cx, cy, cx + R * 0.72 * ends[i][0], cy - R * 0.72 * ends[i][1], R * 0.28);
        set(line, { d: drawn.line });
        set(head, { d: drawn.head });
      });
      set(between, { d: wedge(cx, cy, R * 0.42, b, b + wrapped(a - b)) });
      const s = dot(...ends);
      if (part) say(part, (s < 0 ? "− " : "+ ") + Math.abs(s).toFixed(2));
      channels(t, p).forEach((c, i) => ends.forEach((end, j) => {
        const h = end[i] * size;
        set(boxes[c][1 - j], { y: y1 + tall / 2 - Math.max(0, h), height: Math.abs(h) });
      }));
    }
    for (const [t, s, thread] of threads) {
      const from = x0 + (t + 0.5) * wide + (s - 0.5) * Math.min(16, wide / 3), to = app.glide(`${p.pairs} ${t} ${s}`, place(channels(t, p)[s]));
      set(thread, { d: `M${from.toFixed(1)} ${y0}C${from.toFixed(1)} ${y0 + 18} ${to.toFixed(1)} ${y1 - 18} ${to.toFixed(1)} ${y1}` });
    }
  };
}

export const rotary = {
  title: speak`RoPE: queries and keys that turn`, question: speak`Let query and key walk on together: what stays the same?`,
  smooth: ["m", "n"], drawn: ["pair", "view"], menus: ["base"], folded: ["layout", "turning", "content"],
  plays: { both: speak`both walk on`, query: speak`the query walks` },
  shape: ({ params: p }) => [p.pairs, p.pair, p.base, p.layout, p.turning, p.content].join(),
  scene, reached, build,
  play: (app, how, dt, now) => walk(app, "m", "n", how === "both", 3.2, dt, now),
};
