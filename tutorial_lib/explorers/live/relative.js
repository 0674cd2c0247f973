// Relative biases: a ribbon of offsets slides over the matrix, and each row is a window of that ribbon.
import { STEPS, canvas, clamp, clipped, commas, drag, grip, hover, html, list, minus, named, pens, point,
  range, say, scale, set, signed, slide, speak, svg, ticks, walk } from "./kit.js";

const HEADS = 12, BYTES = 4, LENGTHS = range(15).map(n => 2 ** (n + 2));

// ---- numbers: the same as Python's ----
const turn = p => (p.sign === "j − i" ? 1 : -1);
/** Which number of the table serves this offset. */
export function entry(r, p, { edges }) {
  const { method, tokens, size } = p, far = Math.abs(r);
  if (method === "full table") return r + tokens - 1;
  if (method === "clipped") return clamp(r, -size, size) + size;
  if (method === "ALiBi") return far;
  return edges[`${size} ${p.far}`].filter(edge => edge <= far).length + (r > 0 ? size : 0);
}
const table = ({ method, tokens, size }) => `${method} ${tokens} ${size}`;
/** The number at an entry: as it was learned, or where the reader has dragged it. */
function number(n, p) {
  const { method, tokens, size, mine } = p;
  if (mine?.of === table(p) && n in mine.values) return mine.values[n];
  if (method === "full table") return n / (tokens - 1) - 1;
  if (method === "clipped") return n / size - 1;
  return method === "ALiBi" ? -n / tokens : n < size ? -n / (size - 1) : (n - size) / (size - 1);
}
export const value = (r, p, data) => number(entry(turn(p) * r, p, data), p);
/** f"{v:.2f}": of two that are equally near, Python takes the even one. */
function two(v) {
  const cents = v * 100;
  return (Math.abs(cents % 1) === 0.5 ? 2 * Math.round(cents / 2) / 100 : v).toFixed(2);
}
/** How a number is found: an expression, the place in the table, the number. */
function steps({ i, j, ...p }, data) {
  const [a, b] = turn(p) > 0 ? [j, i] : [i, j], r = a - b, n = entry(r, p, data), found = two(value(j - i, p, data));
  if (p.method === "full table") return [`W_r[${a} − ${b} + ${p.tokens - 1}]`, `W_r[${n}]`, found];
  if (p.method === "clipped") return [`b[clip(${a} − ${b}, ${p.size}) + ${p.size}]`, `b[${n}]`, found];
  if (p.method === "T5 buckets") return [`b[bucket(${a} − ${b})]`, `b[${n}]`, found];
  return [`−m·|${a} − ${b}|`, `−1/${p.tokens} · ${Math.abs(r)}`, found];
}
const entries = ({ method, size }, length) =>
  ({ "full table": 2 * length - 1, clipped: 2 * size + 1, "T5 buckets": 2 * size, ALiBi: 1 })[method];
const costs = (p, length) => [entries(p, length), length ** 2, 2 * length - 1].map(n => HEADS * BYTES * n);
/** What query i gives to each key if the bias alone counts. */
function looks({ i, ...p }, data) {
  const e = range(p.tokens).map(j => Math.exp(value(j - i, p, data))), sum = e.reduce((a, b) => a + b);
  return e.map(v => v / sum);
}
const names = p => [p.method === "ALiBi" ? speak`slopes` : speak`table`, speak`all pairs`, speak`one line`];
const unit = n => (n < 1e3 ? `${n} B` : `${+(n / (n < 1e6 ? 1e3 : 1e6)).toPrecision(3)} ${n < 1e6 ? "kB" : "MB"}`);
const sideOf = (i, j) => (i === j ? speak`the token itself` : j < i ? speak`past` : speak`future`);

export function scene(p, data) {
  const { method, tokens, size, far, sign, view, i, j } = p, all = range(tokens), found = steps(p, data).join(" = ");
  const line = range(2 * tokens - 1).map(n => value(n - tokens + 1, p, data)), at = r => two(line[r + tokens - 1]);
  const bytes = costs(p, tokens), cost = list(names(p).map((name, n) => `${name} ${commas(bytes[n])}`));
  const each = LENGTHS.map(length => costs(p, length));
  const weights = looks(p, data), beside = view === "attention" ? [all.map(n => n - i), weights]
    : [LENGTHS, ...range(3).map(n => each.map(row => row[n]))];
  const sizes = { clipped: speak`, clipped at ${size}`, "T5 buckets": speak`, ${size} buckets a side up to the distance ${far}` };
  const told = method === "ALiBi" ? speak`a mirror: past and future get the same` : turn(p) > 0
    ? speak`keys of the past get ${at(1 - tokens)} to ${at(-1)}, those of the future ${at(1)} to ${at(tokens - 1)}`
    : speak`keys of the past get ${at(1 - tokens)} to ${at(-1)}, those of the future ${at(1)} to ${at(tokens - 1)}, each the numbers learned for the other`;
  return { views: { bias: all.map(row => all.map(column => line[column - row + tokens - 1])), beside },
    result: view === "memory" ? speak`${tokens} tokens: ${list(names(p).map((name, n) => `${name} ${unit(bytes[n])}`))}.` : speak`${2 * tokens - 1} offsets share ${new Set(line).size} numbers; the key ${j === i ? speak`at the query's own place` : j < i ? speak`${i - j} before the query` : speak`${j - i} after the query`} gets ${(100 * weights[j]).toFixed(0)} % of its attention by them alone.`,
    readouts: { bias: `i = ${i}, j = ${j} (${sideOf(i, j)}): ${found}` },
    description: speak`${named("method", method, data)}, ${tokens} tokens${sizes[method] ?? ""}, read at ${sign}: ${told}; the ${
      2 * tokens - 1} offsets have ${new Set(line).size} different numbers; marked is i = ${i}, j = ${j}: ${
      found}; by the bias alone that key gets ${two(weights[j])} of the attention; bytes for ${HEADS} heads: ${cost}.` };
}
export function reached(p, data) {
  const { shared: [close, distant], near } = data;
  if (p.tokens <= distant) return "";
  const past = range(p.tokens).map(d => value(-d, p, data)), alike = past.indexOf(past[distant]);
  const own = new Set(past.slice(0, near + 1)).size > near && alike > near;
  return own && alike <= close ? speak`${entries(p, p.tokens)} numbers serve ${2 * p.tokens - 1} offsets; from distance ${
    alike} on, they all share one.` : "";
}

// ---- the picture ----
const shade = (v, { palette }) => signed(palette, v);

function build(app, stage) {
  const { params: p, data } = app, N = p.tokens, narrow = stage.clientWidth < 600, parent = html(stage, "div", { style: "position:relative" });
  const W = app.width(parent), side = narrow ? W - 130 : Math.min(W / (3 - 2 / N), app.small ? 178 : 296), c = side / N;
  // on a slide the ribbon begins at the left, and no words stand there: all else gets larger
  const x0 = narrow ? 74 : app.small ? side - c + 34 : (W - side) / 2, half = app.small ? 22 : 46, zero = half + (app.small ? 14 : 24), ribbon = zero + half + 7;
  const thick = clamp(c, 12, 24), low = app.small ? 5 : 0, top = ribbon + thick + 38, bottom = top + side, under = bottom + 46 - low;
  const lean = narrow && p.view === "memory" ? 130 : 0; // no room for how a number is found
  const H = narrow ? under + 340 - lean : under, percent = (part, of) => `${(100 * part / of).toFixed(3)}%`;
  const cells = html(parent, "canvas", { width: N, height: N, "aria-hidden": "true", style: `position:absolute;left:${percent(x0, W)};top:${
    percent(top, H)};width:${percent(side, W)};height:${percent(side, H)};image-rendering:pixelated` });
  const [pic, pen] = canvas(parent, W, H, speak`The ribbon of offsets, and the matrix that it writes`, { style: `position:relative${app.small ? ";font-size:15px" : ""}` });
  const plays = !narrow && side > 250; // there is room for them beside the matrix
  app.playbar.style = !plays ? "" : `position:absolute;left:0;top:${percent(top + 180, H)};width:220px`;
  if (plays) parent.append(app.playbar);
  else if (!app.small) stage.prepend(app.playbar);
  const learned = p.method !== "ALiBi", numbers = c > 40, tiny = app.small ? 15 : 11, size = c < 50 ? tiny : 13;

  // -- the ribbon: bars and cells at the offsets that the table is asked for --
  for (const v of [-1, 0, 1]) {
    if (!app.small) pen.line({ x1: narrow ? 24 : 30, x2: W, y1: zero - half * v, y2: zero - half * v, stroke: "--line", sw: v ? 1 : 2 });
    pen.text({ x: narrow ? 18 : 22, y: zero - half * v, vc: 1, ta: "end" }, v > 0 ? "+1" : minus(v));
  }
  const moving = set(clipped(pic, narrow ? 24 : 30, W, H), { class: "lv-ribbon" }), tape = svg(moving, "g");
  if (app.small) for (const v of [-1, 0, 1]) svg(tape, "line", { x1: (0.5 - N) * c, x2: (N - 0.5) * c, y1: zero - half * v, y2: zero - half * v, stroke: "--line", sw: v ? 1 : 2 }); // as long as the ribbon
  if (narrow) fade(pic, W, ribbon + thick);
  const groups = [];
  for (let r = 1 - N; r < N; r++) {
    const n = entry(r, p, data), own = learned ? n : r, last = groups.at(-1);
    if (last?.own === own) last.to = r;
    else groups.push({ n, own, from: r, to: r });
  }
  for (const group of groups) {
    const x = (group.from - 0.5) * c, width = (group.to - group.from + 1) * c;
    group.bar = svg(tape, "rect", { x: x + Math.min(1, c / 5), width: width - Math.min(2, c / 2.5), stroke: "--soft", sw: width > 5 ? 0.7 : 0 });
    group.cell = svg(tape, "rect", { x, width, y: ribbon, height: thick });
    group.dot = app.small && learned && c > 9 && svg(tape, "circle", { cx: x + width / 2, r: 3.5, fill: "--paper", stroke: "--mix", sw: 2 });
    group.name = !app.small && learned && width > 21 && svg(moving, "text", { y: 9, mid: 1, fs: tiny }, group.n);
    group.text = numbers && svg(moving, "text", { y: ribbon + thick / 2, mid: 1, fw: 600, fs: size });
  }
  if (c > 5) svg(tape, "path", { d: range(2 * N).map(n => `M${((n - N + 0.5) * c).toFixed(1)} ${ribbon}v${thick}`).join(""), stroke: "--paper", opacity: 0.55 });
  const [close, distant] = data.shared, marked = [-distant, -close, -data.near, 0, data.near, close, distant];
  const shown = N > distant ? marked : N < 10 ? range(2 * N - 1).map(n => n - N + 1).filter(r => !app.small || r % 2 || !r) : ticks(1 - N, N - 1, 9);
  const rule = shown.map(r => svg(moving, "text", { x: r * c, y: ribbon + thick + 13 + low, ta: "middle", fs: c > 30 ? 13 : tiny }, minus(r)));
  if (!app.small) {
    if (learned) pen.text({ x: 0, y: 9, vc: 1, fs: 12 }, speak`number`);
    pen.text({ x: 0, y: ribbon + thick + 13, fs: 12 }, speak`offset`);
  }
  const paint = (r, to) => {
    if (!learned) return;
    const mine = p.mine?.of === table(p) ? p.mine : { of: table(p), values: {} };
    app.set({ mine: { ...mine, values: { ...mine.values, [entry(turn(p) * r, p, data)]: to } } });
  };
  const height = to => Math.round(20 * clamp((zero - to.y) / half, -1, 1)) / 20;
  const offset = to => Math.floor((to.x - x0) / c) - p.i, asked = r => clamp(r, 1 - N, N - 1);
  const area = pen.rect({ x: 0, width: W, y: 3, height: zero + half + 3, fill: "#0000", style: learned ? "cursor:crosshair;touch-action:none" : "" });
  let before = null;
  if (learned) drag(app, area, "value", {
    down(to) { app.pause(); before = [asked(offset(to)), height(to)]; paint(...before); },
    move(to) { // a quick hand skips bars: fill in those between
      const now = [asked(offset(to)), height(to)], many = Math.max(1, Math.abs(now[0] - before[0]));
      for (const n of range(many)) paint(Math.round(before[0] + (now[0] - before[0]) * (n + 1) / many), before[1] + (now[1] - before[1]) * (n + 1) / many);
      before = now;
    },
  });
  hover(app, area, to => {
    const r = offset(to);
    return Math.abs(r) < N && (learned ? speak`offset ${minus(r)} reads number ${entry(turn(p) * r, p, data)}: ${minus(two(value(r, p, data)))}. Drag it`
      : speak`offset ${minus(r)}: ${minus(two(value(r, p, data)))}. A slope, nothing learned`);
  });
  const window_ = pen.rect({ x: x0, width: side, y: ribbon - 3, height: thick + 6, rx: 3, fill: "none", stroke: "--q", sw: 2.5, still: 1 });
  const falls = pen.path({ fill: "none", stroke: "--q2", sw: 2, dash: "3 4" });
  if (!app.small) {
    pen.text({ x: x0 - 14, y: top - 9, ta: "end", halo: 1 }, speak`← past`);
    pen.text({ x: x0 + side + (narrow ? 3 : 14), y: top - 9, halo: 1 }, speak`future →`);
  }

  // -- the matrix --
  const hit = pen.rect({ x: x0, y: top, width: side, height: side, fill: "#0000", style: "cursor:pointer;touch-action:none" });
  const cell = to => [(to.y - top) / c - 0.5, (to.x - x0) / c - 0.5];
  const go = to => { const [i, j] = cell(to); app.hold("i", i); app.hold("j", j); };
  drag(app, hit, "i", { down: go, move: go, up: () => app.release("j") });
  hover(app, hit, to => {
    const [i, j] = cell(to).map(v => clamp(Math.round(v), 0, N - 1));
    return `i = ${i}, j = ${j}: ${minus(two(value(j - i, p, data)))}`;
  });
  const texts = numbers ? range(N * N).map(n => pen.text({ x: x0 + (n % N + 0.5) * c, y: top + (Math.floor(n / N) + 0.5) * c, mid: 1, still: 1, fs: size })) : [];
  const row = pen.rect({ x: x0, width: side, height: c, fill: "none", stroke: "--q", sw: 2.5, still: 1 });
  const frames = [["--paper", 5], ["--mix", 3]].flatMap(([stroke, sw]) => [0, 1].map(() =>
    pen.rect({ width: Math.max(c, 6), fill: "none", stroke, sw, still: 1, rx: 2 })));
  const stem = pen.path({ fill: "none", stroke: "--mix", sw: 3 });
  const follow = [pen.text({ x: x0 - 44, vc: 1, ta: "end", fill: "--q", fw: 700, fs: 15 }), pen.text({ y: bottom + 23, vc: 1, fill: "--k", fw: 700, fs: 15 })];
  const knob = learned ? handle(app, pic, paint, height, data) : null;
  const grips = [grip(app, pic, "q", "i", "i", speak`query i`), grip(app, pic, "k", "j", "j", speak`key j`)];
  slide(app, grips[0], "i", to => cell(to)[0]);
  slide(app, grips[1], "j", to => cell(to)[1]);

  // -- how the number is found, what it costs --
  const lines = range(app.small || lean ? 0 : 5).map(n => pen.text({ x: 0, y: (narrow ? under + 14 : top + 34) + n * 25 + 7 * (n > 2) + 5 * (n > 3), fs: n === 3 ? 22 : 15,
    fw: n === 3 ? 700 : 400, fill: n === 3 ? "--mix" : "--ink" }));
  const left = narrow ? 46 : x0 + side + 70, price = (p.view === "memory" ? bytes : attention)(app, pic, left, narrow ? W - (p.view === "memory" ? 72 : 42) : app.small && p.view !== "memory" ? W - 34 : W - 78,
    narrow ? under + 178 - lean : top + 40, narrow ? H - 38 : bottom - 8);
  const g = cells.getContext("2d"), image = g.createImageData(N, N);
  const ride = (text, x) => set(text, { x, display: x < 52 || x > W - 12 ? "none" : "inline" });
  let drawn = "", old;

  return () => {
    const { i, j } = app.shown, s = app.glide("sign", turn(p), 0.01), at = x0 + (i + 0.5) * c, near = r => at + r * c;
    if (drawn !== p.sign || old !== p.mine) {
      [drawn, old] = [p.sign, p.mine];
      const line = range(2 * N - 1).map(n => value(n - N + 1, p, data)), inks = line.map(v => shade(v, data));
      for (const n of range(N * N)) image.data.set([...inks[n % N - Math.floor(n / N) + N - 1].rgb, 255], 4 * n);
      g.putImageData(image, 0, 0);
      texts.forEach((text, n) => {
        const r = n % N - Math.floor(n / N) + N - 1;
        say(text, minus(two(line[r])));
        set(text, { fill: inks[r].ink });
      });
      for (const { n, bar, cell: box, text, dot } of groups) {
        const v = number(n, p), { fill, ink } = shade(v, data);
        set(bar, { y: zero - Math.max(0, v) * half, height: Math.max(1, Math.abs(v) * half), fill });
        set(box, { fill });
        if (dot) set(dot, { cy: zero - v * half });
        if (!text) continue;
        say(text, minus(two(v)));
        set(text, { fill: ink });
      }
    }
    set(tape, { transform: `translate(${at.toFixed(2)} 0) scale(${s.toFixed(4)} 1)` });
    for (const { from, to, name, text } of groups) for (const node of [name, text]) if (node) ride(node, near(s * (from + to) / 2));
    rule.forEach((text, n) => ride(text, near(shown[n])));
    const y = top + i * c, x = x0 + j * c, wide = Math.max(c, 6);
    set(row, { y });
    set(falls, { d: `M${x0} ${ribbon + thick + 3 + 4 * low}V${y}M${x0 + side} ${ribbon + thick + 3 + 4 * low}V${y}` });
    frames.forEach((frame, n) => set(frame, { x: x + (c - wide) / 2, y: n % 2 ? y + (c - wide) / 2 : ribbon, height: n % 2 ? wide : thick }));
    set(stem, { d: `M${x + c / 2} ${ribbon + thick + 18 + low}V${top - 2}m-5 -7l5 7l5 -7` });
    set(grips[0], { transform: `translate(${x0 - 22} ${y + c / 2})` });
    set(grips[1], { transform: `translate(${x + c / 2} ${bottom + 23})` });
    set(follow[0], { y: y + c / 2 });
    const late = x > x0 + side / 2;
    set(follow[1], { x: x + c / 2 + (late ? -24 : 24), ta: late ? "end" : "start" });
    say(follow[0], narrow ? "" : `i = ${p.i}`);
    say(follow[1], `j = ${p.j}`);
    const v = value(p.j - p.i, p, data), where = p.i === p.j ? sideOf(p.i, p.j)
      : speak`offset ${minus(p.j - p.i)}, ${sideOf(p.i, p.j)}`;
    knob?.(x + c / 2, zero - half * v, v);
    const kept = entries(p, N), read = new Set(groups.map(group => group.n)).size, mine = p.mine?.of === table(p);
    const told = [where, ...steps(p, data), learned
      ? mine ? speak`table of ${kept}, yours: ${read} read here` : speak`table of ${kept}: ${read} read here`
      : speak`no table: a slope, ${2 * N - 1} offsets`];
    lines.forEach((line, n) => say(line, minus(n > 1 && n < 4 ? `= ${told[n]}` : told[n])));
    price();
  };
}

/** At both ends of a narrow picture the ribbon fades: it goes on there. */
function fade(pic, W, bottom) {
  const defs = svg(pic, "defs"), id = `lv${Math.random().toString(36).slice(2)}`;
  const gradient = svg(defs, "linearGradient", { id });
  for (const [offset, opacity] of [[0, 1], [1, 0]]) svg(gradient, "stop", { offset, "stop-color": "var(--paper)", "stop-opacity": opacity });
  for (const transform of ["translate(24 0)", `translate(${W} 0) scale(-1 1)`]) {
    svg(pic, "rect", { width: 18, y: 14, height: bottom - 14, fill: `url(#${id})`, transform, still: 1 });
  }
}
/** The handle of the number that is read: it goes up and down, by hand or by keys. */
function handle(app, pic, paint, height, data) {
  const { params: p } = app, g = svg(pic, "g", { class: "lv-grip", role: "slider", tabindex: 0, "data-key": "value",
    "aria-label": speak`the number that is read`, "aria-valuemin": 0, "aria-valuemax": 40 });
  svg(g, "circle", { r: 20, fill: "#0000" });
  svg(g, "circle", { r: 12, class: "lv-ring" });
  svg(g, "circle", { r: 8, fill: "--mix", rim: 1 });
  if (app.small) svg(g, "path", { d: "M-6-11h12l-6-8zM-6 11h12l-6 8z", fill: "--mix", rim: 1 }); // where it can go
  drag(app, g, "value", { move: to => paint(p.j - p.i, height(to)) });
  let now = 0;
  g.addEventListener("keydown", event => {
    if (!(event.key in STEPS)) return;
    event.preventDefault();
    app.pause();
    paint(p.j - p.i, clamp(Math.round(20 * now) + STEPS[event.key], -20, 20) / 20);
  });
  app.told.push(() => {
    now = value(p.j - p.i, p, data);
    set(g, { "aria-valuenow": Math.round(20 * now) + 20, "aria-valuetext": two(now) });
  });
  return (x, y) => set(g, { transform: `translate(${x} ${y})` });
}

const ENDS = [0.02, 0.04, 0.1, 0.2, 0.4, 0.6, 0.8]; // where the axis of weights may end
/** Where the query looks: a bar for each key. */
function attention(app, pic, left, right, top, bottom) {
  const { params: p, data } = app, N = p.tokens, pen = pens(pic), fs = app.small ? 15 : 11, c = (right + 30 - left) / N;
  const x = j => left + j * c, y = scale(0, 1, bottom, top);
  const title = pen.text({ x: left - 40, y: top - 15, fill: "--q", fw: 700 });
  const marks = [0, 0.5, 1].map(v => {
    pen.line({ x1: left, x2: x(N), y1: y(v), y2: y(v), stroke: "--line", sw: v ? 1 : 2 });
    return pen.text({ x: left - 7, y: y(v), ta: "end", vc: 1, fs });
  });
  const bars = range(N).map(j => pen.rect({ x: x(j) + Math.min(2, c / 6), width: c - Math.min(4, c / 3), fill: "--mix" }));
  const spot = pen.path({ fill: "--q" }), frame = pen.rect({ width: Math.max(c, 6), fill: "none", stroke: "--k", sw: 2.5, rx: 2, still: 1 });
  for (const j of ticks(0, N - 1, N > 8 ? 5 : 8)) pen.text({ x: x(j + 0.5), y: bottom + (app.small ? 25 : 21), ta: "middle", fs }, j);
  pen.text({ x: (left + x(N)) / 2, y: bottom + (app.small ? 43 : 36), ta: "middle" }, speak`← past key j future →`);
  const told = pen.text({ ta: "middle", fw: 700, fill: "--mix", halo: 1 }), area = pen.rect({ x: left, width: x(N) - left, y: top, height: bottom - top, fill: "#0000", style: "cursor:pointer;touch-action:pan-y" });
  const at = to => clamp(Math.floor((to.x - left) / c), 0, N - 1);
  drag(app, area, "j", { down: to => app.set({ j: at(to) }), move: to => app.set({ j: at(to) }) });
  hover(app, area, to => speak`key ${at(to)} gets ${two(looks(p, data)[at(to)])} of the attention, offset ${minus(at(to) - p.i)}`);
  return () => {
    const now = looks(p, data), most = ENDS.find(end => end >= Math.max(...now)) ?? 1, { i, j } = app.shown;
    const high = now.map((w, n) => y(N > 16 ? w / most : app.glide(`look${n}`, w / most, 0.001)));
    marks.forEach((mark, n) => say(mark, `${+(most * n / 2).toFixed(2)}`));
    bars.forEach((bar, n) => set(bar, { y: high[n], height: bottom - high[n], opacity: n === p.j ? 1 : 0.6 }));
    say(title, right - left < 190 ? speak`where query ${p.i} looks` : speak`where query ${p.i} looks, by the bias alone`);
    set(spot, { d: `M${x(i + 0.5)} ${bottom + 2}l5 7h-10Z` });
    set(frame, { x: x(j) + Math.min(0, (c - 6) / 2), y: high[p.j] - 1, height: bottom - high[p.j] + 2 });
    set(told, { x: clamp(x(p.j + 0.5), left + 14, x(N) - 14), y: high[p.j] - 8 });
    say(told, two(now[p.j]));
  };
}

/** Bytes over the length, which can be dragged. */
function bytes(app, pic, left, right, top, bottom) {
  const { params: p, table: { tokens: { values } } } = app, pen = pens(pic), log = Math.log2, fs = app.small ? 15 : 11;
  const x = scale(2, 16, left, right), y = scale(2, 38, bottom, top), most = bottom - 14;
  pen.text({ x: left - 40, y: top - 15, fill: "--ink", fw: 700 }, speak`bytes for ${HEADS} heads`);
  for (const [n, text] of [[10, "1 kB"], [20, "1 MB"], [30, "1 GB"]]) {
    pen.line({ x1: left, x2: right, y1: y(n), y2: y(n), stroke: "--line" });
    pen.text({ x: left - 7, y: y(n), ta: "end", vc: 1, fs }, text);
  }
  for (const n of app.small ? [2, 16] : [2, 6, 10, 16]) pen.text({ x: x(n), y: bottom + 15, ta: "middle", fs }, commas(2 ** n));
  pen.text({ x: (left + right) / 2, y: bottom + 32, ta: "middle" }, speak`length N`);
  const inks = ["--mix", "--ink", "--soft"], order = [2, 1, 0], ends = costs(p, 2 ** 16).map(v => y(log(v)));
  if (Math.abs(ends[0] - ends[2]) < 15) ends[0] = ends[2] - 15 * (ends[0] <= ends[2] ? 1 : -1);
  const dots = names(p).map((name, n) => {
    const d = `M${LENGTHS.map(length => `${x(log(length)).toFixed(1)} ${y(log(costs(p, length)[n])).toFixed(1)}`).join("L")}`;
    pen.path({ d, fill: "none", stroke: inks[n], sw: 2.2, dash: n ? "none" : "7 4" });
    pen.text({ x: right + 6, y: ends[n], vc: 1, fill: inks[n], fw: 700 }, name);
    return n;
  });
  const stem = pen.line({ y1: top, y2: bottom, stroke: "--soft", sw: 2, dash: "3 4" });
  const spots = dots.map(n => pen.circle({ r: 5, fill: inks[n], rim: 1 }));
  const area = pen.rect({ x: left - 8, width: right - left + 16, y: top, height: most - top + 14, fill: "#0000", style: "cursor:col-resize;touch-action:pan-y" });
  const go = to => {
    const wish = x.back(to.x), near = values.reduce((best, v) => (Math.abs(log(v) - wish) < Math.abs(log(best) - wish) ? v : best));
    if (near !== p.tokens) app.set({ tokens: near });
  };
  drag(app, area, "tokens", { down: go }); // another length is another picture, so the hand lets go
  hover(app, area, to => {
    const length = 2 ** clamp(Math.round(x.back(to.x)), 2, 16), cost = costs(p, length);
    return speak`N = ${commas(length)}: ${list(names(p).map((name, n) => `${name} ${commas(cost[n])}`))} bytes`;
  });
  return () => {
    const at = x(app.glide("length", log(p.tokens)));
    set(stem, { x1: at, x2: at });
    order.forEach(n => set(spots[n], { cx: at, cy: y(log(costs(p, p.tokens)[n])) }));
  };
}

export const relative = {
  title: speak`Relative biases: a ribbon of offsets that writes a matrix`, smooth: ["i", "j"], drawn: ["mine"],
  slide: ["method", "sign"], folded: ["tokens", "sign", "view"], question: speak`How many numbers does it take to say how far?`, own: { mine: { start: null, values: [] } },
  plays: { row: speak`row by row`, diagonal: speak`along a diagonal` },
  shape: ({ params: p }) => [table(p), p.far, p.view].join(), scene, reached, build,
  play: (app, how, dt, now) => walk(app, "i", "j", how === "diagonal", Math.max(1.2, app.params.tokens / 8), dt, now),
};
