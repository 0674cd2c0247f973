// A learned table under X-rays: the cosine of every two rows. Move a row through it, with its cosines, norms, neighbours, waves.
import { TAU, canvas, clamp, grip, hover, html, minus, named, point, range, say, scale, set, slide,
  speak, svg, tag, through, ticks, walk } from "./kit.js";

// ---- numbers: the same as Python's ----
const ready = new Map();
const kept = (key, make) => {
  if (!ready.has(key)) {
    if (ready.size > 9) ready.clear();
    ready.set(key, make());
  }
  return ready.get(key);
};
/** Random rows: Marsaglia's xorshift, Box and Muller. */
function drawn(std, { rows, width, seed }) {
  const share = () => {
    seed ^= seed << 13;
    seed ^= seed >>> 17;
    seed ^= seed << 5;
    return (seed >>> 0) / 2 ** 32;
  };
  const found = new Float64Array(rows * width);
  for (let i = 0; i < found.length; i += 2) {
    const size = std * Math.sqrt(-2 * Math.log(share())), turn = TAU * share();
    found[i] = size * Math.cos(turn);
    found[i + 1] = size * Math.sin(turn);
  }
  return found;
}
function original(name, data) {
  const { rows, width } = data, sinusoids = name === "sinusoids";
  if (name.startsWith("random")) return drawn(name.endsWith("std 1") ? 1 : 0.02, data);
  const bytes = sinusoids ? null : Int8Array.from(atob(data.minilm), c => c.charCodeAt(0));
  return Float64Array.from({ length: rows * width }, (_, n) => {
    const i = Math.floor(n / width), c = n % width;
    if (!sinusoids) return bytes[n] * data.row[i] * data.column[c];
    const angle = i * 10_000 ** (-2 * (c >> 1) / width);
    return c % 2 ? Math.cos(angle) : Math.sin(angle);
  });
}
/** The table, stretched over `length` rows, and the norm of each. */
export const table = (name, length, data) => kept(`${name} ${length}`, () => {
  const { rows, width } = data, from = length === rows ? null : table(name, rows, data).all;
  const all = from ? new Float64Array(length * width) : original(name, data), norms = new Float64Array(length);
  for (const i of range(length)) {
    const at = i * (rows - 1) / (length - 1), low = Math.min(Math.floor(at), rows - 2);
    let sum = 0;
    for (let c = 0; c < width; c++) {
      if (from) all[i * width + c] = from[low * width + c] * (1 - at + low) + from[(low + 1) * width + c] * (at - low);
      sum += all[i * width + c] ** 2;
    }
    norms[i] = Math.sqrt(sum);
  }
  return { all, norms, width };
});
export function cosine({ all, norms, width }, i, j) {
  let sum = 0;
  for (let a = i * width, b = j * width, c = 0; c < width; c++) sum += all[a + c] * all[b + c];
  return clamp(sum / (norms[i] * norms[j]), -1, 1);
}
/** Where the hands of the waves point at row i of a table, `[x, y]` for each: the rows in the plane of a wave. */
export function hands(name, length, data) {
  const turning = data.rows - 3, lay = ({ all, width }, i, { re, im }) => {
    let x = 0, y = 0;
    for (let c = 0; c < width; c++) {
      x += all[i * width + c] * re[c];
      y += all[i * width + c] * im[c];
    }
    return [x, y];
  };
  const planes = kept(`planes ${name}`, () => {
    const t = table(name, data.rows, data);
    return data.cycles.map(cycles => {
      const plane = { re: new Float64Array(t.width), im: new Float64Array(t.width) };
      for (const n of range(turning)) {
        const turn = TAU * cycles * n / turning, cos = Math.cos(turn), sin = Math.sin(turn);
        for (let c = 0, at = (n + 1) * t.width; c < t.width; c++) {
          plane.re[c] += cos * t.all[at + c];
          plane.im[c] += sin * t.all[at + c];
        }
      }
      const ends = range(turning).map(n => lay(t, n + 1, plane)), middle = [0, 1].map(k => mean(ends.map(end => end[k])));
      return { ...plane, middle, size: Math.sqrt(mean(ends.map(([x, y]) => (x - middle[0]) ** 2 + (y - middle[1]) ** 2))) };
    });
  });
  const t = table(name, length, data);
  return i => planes.map(plane => lay(t, i, plane).map((v, k) => (v - plane.middle[k]) / plane.size));
}
/** What stretching did to the loss of a language model, in words. */
function lost({ length }, { rows, losses }) {
  const loss = losses[Math.log2(length / rows)].toFixed(2);
  return length > rows ? speak`A small language model of ours, its table stretched ${length / rows} times: loss ${loss} nats.`
    : speak`A small language model of ours, its table as trained: loss ${loss} nats.`;
}
const mean = values => values.reduce((sum, v) => sum + v, 0) / values.length;
const median = values => values.toSorted()[(values.length - 1) >> 1];
const fixed = v => v.toFixed(2).replace(/^-(0\.00)$/, "$1");

export function scene(p, data) {
  const { name, length, shown, view, look, position, other } = p, t = table(name, length, data), every = Math.max(1, shown / data.cells);
  const some = range(shown / every).map(i => i * every), apart = d => kept(`${name} ${length} ${shown} ${d}`, () =>
    mean(range(shown - d).map(i => cosine(t, i, i + d))));
  const heat = kept(`heat ${name} ${length} ${shown}`, () => some.map(i => some.map(j => cosine(t, i, j))));
  const norms = [...t.norms.slice(0, shown)], own = range(shown).map(j => cosine(t, position, j));
  let beside, seen;
  if (look === "waves") {
    const ends = hands(name, length, data)(position), periods = data.cycles.map(n => Math.round((data.rows - 3) / n));
    beside = [0, 1].map(k => ends.map(end => end[k]));
    seen = speak`five hands, for waves of ${periods.join(", ")} rows, of the lengths ${ends.map(end => Math.hypot(...end).toFixed(1)).join(", ")}`;
  } else if (view === "cosine") {
    beside = [range(shown), own];
    seen = speak`the cosines of row ${position} with all of them, down to ${Math.min(...own).toFixed(2)}`;
  } else if (view === "norm") {
    beside = [range(shown), norms, norms.map(() => data.start)];
    seen = speak`the norms, ${Math.min(...norms).toFixed(2)} to ${Math.max(...norms).toFixed(2)}; a row drawn with std 0.02 has ${
      data.start.toFixed(2)}`;
  } else {
    const last = range(Math.min(shown, length - 1)), near = last.map(i => cosine(t, i, i + 1));
    beside = [last, near];
    seen = speak`the cosine of each row with the next, ${Math.min(...near).toFixed(2)} to ${Math.max(...near).toFixed(2)}`;
  }
  const [close, distant] = [apart(1), apart(8)];
  const result = close > 0.3 ? speak`Neighbours look alike (cosine ${fixed(close)}), rows 8 apart ${distant < close - 0.05 ? speak`less so` : speak`as much`} (${minus(fixed(distant))}): the table knows what is near.`
    : speak`Neighbours have nothing in common (cosine ${minus(fixed(close))}): the table tells places apart, not which are near.`;
  return { views: { cosines: heat, beside }, result, description:
    speak`The table “${named("name", name, data)}”, ${length} positions × ${data.width} numbers, the first ${shown} of them: the cosine is ${
      fixed(apart(1))} for neighbours and ${fixed(apart(8))} for rows 8 apart, on average; marked is row ${position}, norm ${
      norms[position].toFixed(2)}, and its cosine with row ${other}, ${fixed(own[other])}; beside it ${seen}. ${lost(p, data)}` };
}
export function reached({ name, length, position: p }, data) {
  const { norms } = table(name, length, data), [before, here, after] = [p - 1, p, p + 1].map(i => norms[i]);
  if (p < 1 || p >= length - 1 || here < data.ratio * Math.max(before, after)) return "";
  return speak`row ${p} has the norm ${here.toFixed(2)}, its neighbours ${before.toFixed(2)} and ${after.toFixed(2)}; the median of all rows before it is ${
    median(norms.slice(0, p)).toFixed(2)}, of all after it ${median(norms.slice(p + 1)).toFixed(2)}.`;
}

// ---- the picture: p blue, o orange, their cosine green ----
const TWO = [["k", "other", "o"], ["q", "position", "p"]];

function build(app, stage) {
  const narrow = stage.clientWidth < 600, two = html(stage, "div", { class: `lv-two ${narrow ? "lv-one" : app.small ? "" : "lv-even"}` });
  const left = html(two, "div", { style: "position:relative" }), right = html(two, "div");
  if (!app.small) right.append(app.playbar);
  const t = table(app.params.name, app.params.length, app.data), parts = [film(app, left, t), lanes(app, right, t, app.width(right) < 420)];
  if (!app.small && app.params.length > app.data.rows) html(right, "p", { style: `font-size:14px;margin-top:4px;text-align:${narrow ? "left" : "right"};color:var(--soft)` }, lost(app.params, app.data));
  return () => parts.forEach(paint => paint());
}

/** The film: a square of cosines, bright where two rows are alike; lines through it are the rows p and o. */
function film(app, parent, t) {
  const { params: p, data } = app, most = app.width(parent), W = app.small ? Math.min(most, 262) : most, x0 = 40, side = W - x0 - 4, y0 = 22, H = y0 + side + 44;
  const n = p.shown, sharp = Math.min(n, 256), every = n / sharp, part = (v, of) => `${(100 * v / of).toFixed(3)}%`;
  if (app.small) set(parent, { style: `position:relative;width:${app.grow * W}px;margin:auto` });
  const cells = html(parent, "canvas", { width: sharp, height: sharp, "aria-hidden": "true", style: `position:absolute;left:${
    part(x0, W)};top:${part(y0, H)};width:${part(side, W)};height:${part(side, H)};image-rendering:${n > 200 ? "auto" : "pixelated"}` });
  const [pic, pen] = canvas(parent, W, H, speak`The cosine of every two rows`, { style: "position:relative" });
  const bytes = range(data.palette.length / 6).map(i => [0, 2, 4].map(k => parseInt(data.palette.slice(6 * i + k, 6 * i + k + 2), 16)));
  const g = cells.getContext("2d"), image = g.createImageData(sharp, sharp);
  const found = kept(`film ${p.name} ${p.length} ${n}`, () => {
    const all = new Float64Array(sharp * sharp);
    for (const i of range(sharp)) for (let j = 0; j <= i; j++) all[i * sharp + j] = all[j * sharp + i] = cosine(t, i * every, j * every);
    return all;
  });
  const least = found.reduce((a, b) => Math.min(a, b)), low = least < 0 ? -1 : Math.floor(10 * least) / 10; // none below 0: all warm colours
  const ramp = low < 0 ? bytes : bytes.slice(bytes.length / 2);
  found.forEach((v, i) => image.data.set([...ramp[Math.round(clamp((v - low) / (1 - low), 0, 1) * (ramp.length - 1))], 255], 4 * i));
  g.putImageData(image, 0, 0);
  const place = scale(-0.5, n - 0.5, 0, side), at = v => place(v);
  pen.text({ x: x0, y: 10, vc: 1, fill: "--ink", fw: 700 }, speak`Cosine of every two rows`);
  const wide = side / 2.4 / ramp.length, bar = y0 + side + 30;
  ramp.forEach((rgb, i) => pen.rect({ x: x0 + side / 2 - side / 4.8 + i * wide, y: bar, width: wide + 0.5, height: 9, fill: `rgb(${rgb})` }));
  pen.text({ x: x0 + side / 2 - side / 4.8 - 8, y: bar + 5, ta: "end", vc: 1 }, minus(low));
  pen.text({ x: x0 + side / 2 + side / 4.8 + 8, y: bar + 5, vc: 1 }, low < 0 ? "+1" : "1");
  const hit = pen.rect({ x: x0, y: y0, width: side, height: side, fill: "#0000", style: "cursor:crosshair;touch-action:manipulation" });
  const which = v => clamp(Math.floor(v / side * n), 0, n - 1), read = to => [which(to.y - y0), which(to.x - x0)];
  hit.addEventListener("click", event => {
    const [position, other] = read(point(event, pic));
    app.pause();
    app.set({ position, other });
  });
  hover(app, hit, to => {
    const [i, j] = read(to);
    return `cos(P[${i}], P[${j}]) = ${minus(cosine(t, i, j).toFixed(4))}`;
  });
  const lines = TWO.map(([colour, name, letter], k) => {
    const line = pen.g({ class: "lv-hand" }), down = k === 0; // o is a column, p a row
    const ends = down ? { x1: 0, x2: 0, y1: y0, y2: y0 + side } : { x1: x0, x2: x0 + side, y1: 0, y2: 0 };
    for (const [stroke, sw] of [["--paper", 4.5], [`--${colour}`, 2]]) svg(line, "line", { ...ends, stroke, sw });
    svg(line, "line", { ...ends, stroke: "#0000", sw: 16 });
    const [cx, cy] = down ? [0, y0 + side + 11] : [x0 - 12, 0];
    svg(line, "circle", { cx, cy, r: 10, fill: `--${colour}`, rim: 1 });
    svg(line, "text", { x: cx, y: cy, mid: 1, fill: "--paper", fw: 700, fs: 13, still: 1 }, letter);
    slide(app, line, name, to => (down ? to.x - x0 : to.y - y0) / side * n - 0.5);
    return { line, name, down };
  });
  const spot = pen.circle({ r: 7, fill: "none", stroke: "--mix", sw: 3, still: 1 }), value = tag(pic, "--mix");
  return () => {
    const { position, other } = app.shown;
    for (const { line, name, down } of lines) {
      const v = at(app.shown[name]);
      set(line, { transform: down ? `translate(${x0 + v} 0)` : `translate(0 ${y0 + v})` });
    }
    set(spot, { cx: x0 + at(other), cy: y0 + at(position) });
    value(x0 + at(other), clamp(y0 + at(position), y0 + 14, y0 + side - 14), minus(fixed(cosine(t, p.position, p.other))), W);
  };
}

/** Two rails, and below them on the same x: the cosines of p, and the norms and the neighbours, or dials of the waves. */
function lanes(app, parent, t, narrow) {
  const { params: p, data } = app, W = app.width(parent), n = p.shown, left = 70, x = scale(0, n - 1, left, W - 20), { norms } = t;
  const waves = p.look === "waves", few = waves || app.small, high = app.small ? [150] : [132, 74, 74].slice(0, few ? 1 : 3), rails = app.small ? [16, 45] : [16, 50], head = app.small ? 20 : 24;
  const upper = app.small ? 66 : 78;
  let bottom = upper;
  const boxes = high.map(tall => {
    const top = bottom + head;
    bottom = top + tall + 4;
    return [top, top + tall];
  });
  const slot = (W - 20) / 5, R = Math.min(slot / 2.5, 48), H = bottom + 34 + (waves ? 2.6 * R + 58 : 0);
  const [pic, pen] = canvas(parent, W, H, waves ? speak`Rows p and o; cosines and waves` : speak`Rows p and o; cosines, norms and neighbours`);
  const all = range(n), last = range(Math.min(n, norms.length - 1)), near = last.map(i => cosine(t, i, i + 1));
  const some = norms.slice(1, n), lo = Math.min(...some, norms[0]), hi = Math.max(...some), room = Math.log(hi / lo) * 0.12 + 0.05;
  const low = Math.min(0, ...near), tall = Math.log(hi) + room, height = i => Math.min(Math.log(norms[i]), tall); // row 0 may be far above
  const ys = [[-1, 1], [Math.log(lo) - room, Math.log(hi) + room], [low, 1]].slice(0, high.length).map(([a, b], i) => scale(a, b, boxes[i][1], boxes[i][0]));
  const titles = [narrow ? speak`cosine of row p` : speak`cosine of row p with each`, speak`norm of each row`, narrow ? speak`cosine to the next` : speak`cosine with the next row`].slice(0, high.length);
  for (const [i, marks] of [[0, [-1, 0, 1]], [2, low < -0.2 ? [0, 1] : [0, 0.5, 1]]]) if (ys[i]) for (const v of marks) {
    pen.line({ x1: left, x2: W - 20, y1: ys[i](v), y2: ys[i](v), stroke: "--line", sw: v ? 1 : 2 });
    pen.text({ x: left - 9, y: ys[i](v), ta: "end", vc: 1, fs: 12 }, minus(v));
  }
  const start = few ? -1 : ys[1](Math.log(data.start));
  if (!few && start <= boxes[1][1] && start >= boxes[1][0]) {
    pen.line({ x1: left, x2: W - 20, y1: start, y2: start, stroke: "--soft", dash: "5 4" });
    pen.text({ x: left - 9, y: start, ta: "end", vc: 1, fs: 11.5 }, "std 0.02");
  }
  if (!few && Math.log(norms[0]) > tall) pen.text({ x: left - 9, y: boxes[1][0] + 4, ta: "end", vc: 1, fs: 11.5 }, `↑ ${norms[0].toFixed(2)}`);
  if (!few) for (const v of hi > 1.1 * lo ? [lo, hi] : [hi]) { // the norms have their ends, unless something stands there
    const y = ys[1](Math.log(v));
    if (Math.abs(y - start) > 13 && (v < hi || Math.log(norms[0]) <= tall)) pen.text({ x: left - 9, y, ta: "end", vc: 1, fs: 12 }, v.toFixed(v < 9.95 ? 2 : 1));
  }
  const at = ticks(0, n - 1, 6).filter(v => Number.isInteger(v) && n - 1 - v > n / 12);
  for (const v of [...at, n - 1]) pen.text({ x: x(v), y: bottom + 13, ta: "middle" }, v);
  pen.text({ x: (left + W - 20) / 2, y: bottom + 30, ta: "middle" }, speak`position: row of the table`);
  const mine = pen.path({ fill: "none", stroke: "--ink", sw: 2 });
  const fixedLines = few ? [] : [through(all, x, ys[1], height), through(last, x, ys[2], i => near[i])];
  fixedLines.forEach(d => pen.path({ d, fill: "none", stroke: "--ink", sw: n > 200 ? 1.4 : 2, "stroke-linejoin": "round" }));
  const area = pen.rect({ x: x(0) - 8, y: upper, width: x(n - 1) - x(0) + 16, height: bottom - upper, fill: "#0000", style: "cursor:col-resize;touch-action:pan-y" });
  slide(app, area, "position", to => x.back(to.x), true);
  hover(app, area, to => {
    const i = clamp(Math.round(x.back(to.x)), 0, n - 1);
    const [norm, own] = [norms[i].toFixed(3), minus(cosine(t, p.position, i).toFixed(3))];
    return i in near ? speak`row ${i}: norm ${norm}, cosine with p ${own}, with the next row ${minus(near[i].toFixed(3))}`
      : speak`row ${i}: norm ${norm}, cosine with p ${own}`;
  });
  const stems = TWO.map(([colour], k) => pen.line({ stroke: `--${colour}`, sw: 2, y1: app.small ? boxes[0][0] : rails[1 - k], y2: k ? bottom : boxes[0][1], still: 1 }));
  const over = narrow ? 14 : 10; // on a phone names stand above the axis, midway between two numbers
  titles.forEach((text, i) => pen.text({ x: narrow ? 0 : left, y: boxes[i][0] - over, vc: 1, fill: "--ink", fw: 700, fs: 12.5, halo: 1, still: 1 }, text));
  const spots = ["mix", "q", "q"].slice(0, high.length).map(colour => pen.circle({ r: 5.5, fill: `--${colour}`, rim: 1, still: 1 }));
  const values = ["mix", "q", "q"].slice(0, high.length).map((colour, i) => pen.text({ x: W - 20, y: boxes[i][0] - over, vc: 1, ta: "end", fill: `--${colour}`, fw: 700, halo: 1, still: 1 }));
  const grips = TWO.map(([colour, name, letter], k) => {
    const y = rails[1 - k], rail = pen.g();
    svg(rail, "rect", { x: x(0) - 9, width: x(n - 1) - x(0) + 18, y: y - 15, height: 30, fill: "#0000", style: "cursor:pointer" });
    svg(rail, "line", { x1: x(0), x2: x(n - 1), y1: y, y2: y, stroke: `--${colour}2`, sw: 3, cap: 1 });
    slide(app, rail, name, to => x.back(to.x), true);
    const words = pen.text({ x: 0, y, vc: 1, fill: `--${colour}`, fw: 700, fs: 15 });
    const handle = grip(app, pic, colour, name, letter, app.table[name].label, () =>
      speak`${p[name]}, norm ${norms[p[name]].toFixed(2)}, cosine of the two ${cosine(t, p.position, p.other).toFixed(2)}`);
    slide(app, handle, name, to => x.back(to.x));
    return { handle, words, name, y, letter };
  });
  grips.forEach(({ handle }) => pic.append(handle));
  const between = (f, v) => { // interpolated, while a handle is on its way from row to row
    const i = Math.floor(v), j = Math.min(i + 1, n - 1);
    return f(i) + (v - i) * (f(j) - f(i));
  };
  const turn = waves && dials(app, pen, 10, bottom + 62, slot, R);
  let drawnFor = -1;
  return () => {
    const { position, other } = app.shown, own = j => between(i => cosine(t, i, j), position);
    if (drawnFor !== position) set(mine, { d: through(all, x, ys[0], own) });
    drawnFor = position;
    grips.forEach(({ handle, words, name, y, letter }) => {
      set(handle, { transform: `translate(${x(app.shown[name])} ${y})` });
      say(words, `${letter} = ${p[name]}`);
    });
    [other, position].forEach((v, k) => set(stems[k], { x1: x(v), x2: x(v) }));
    set(spots[0], { cx: x(other), cy: ys[0](between(own, other)) });
    const both = minus(fixed(cosine(t, p.position, p.other)));
    say(values[0], narrow ? speak`row o: ${both}` : speak`with row o: ${both}`);
    if (waves) return turn(position, other);
    if (few) return;
    const norm = between(height, position), next = clamp(position, 0, near.length - 1);
    set(spots[1], { cx: x(position), cy: ys[1](norm) });
    set(spots[2], { cx: x(next), cy: ys[2](near[Math.round(next)]) });
    [speak`row p: ${norms[p.position].toFixed(2)}`, near[p.position] === undefined ? "" : speak`row p: ${minus(fixed(near[p.position]))}`]
      .forEach((text, i) => say(values[1 + i], text));
  };
}

/** Five dials: all rows shown in the plane of a wave, pale; the hands of p and o turn through them. */
function dials(app, pen, left, top, slot, R) {
  const { params: p, data } = app, at = hands(p.name, p.length, data), rows = range(p.shown).map(at), cy = top + 1.25 * R;
  pen.text({ x: left, y: top - 14, vc: 1, fill: "--ink", fw: 700, fs: 12.5 }, speak`its waves as hands: p and o`);
  const inside = ([a, b]) => { // row 0 may be far out
    const much = Math.min(1, 1.3 / Math.hypot(a, b));
    return [a * much * R, -b * much * R];
  };
  const each = data.cycles.map((cycles, k) => {
    const cx = left + (k + 0.5) * slot, g = pen.g({ transform: `translate(${cx} ${cy})` });
    svg(g, "circle", { r: R, fill: "none", stroke: "--line", sw: 1 });
    svg(g, "path", { d: `M${rows.map(ends => inside(ends[k]).map(v => v.toFixed(1)).join(" ")).join("L")}`, fill: "none",
      stroke: "--q2", sw: 1, "stroke-linejoin": "round", opacity: p.shown > 150 ? 0.5 : 0.9 });
    const lines = TWO.map(([colour]) => [svg(g, "line", { stroke: `--${colour}`, sw: 3, cap: 1 }), svg(g, "circle", { r: 4.5, fill: `--${colour}`, rim: 1 })]);
    const period = Math.round((data.rows - 3) / cycles) * p.length / data.rows;
    pen.text({ x: cx, y: cy + 1.3 * R + 14, ta: "middle", fs: 12.5 }, speak`${period} rows`);
    return lines;
  });
  return (position, other) => each.forEach((lines, k) => [other, position].forEach((v, which) => {
    const i = Math.floor(v), j = Math.min(i + 1, p.shown - 1), [x, y] = inside([0, 1].map(c => rows[i][k][c] + (v - i) * (rows[j][k][c] - rows[i][k][c])));
    set(lines[which][0], { x1: 0, y1: 0, x2: x, y2: y });
    set(lines[which][1], { cx: x, cy: y });
  }));
}

export const learned = {
  title: speak`A learned table: every row against every other`, smooth: ["position", "other"], drawn: ["view"], slide: ["name"], folded: ["length", "look"],
  question: speak`Which places are near?`,
  plays: { walk: speak`p walks` },
  shape: ({ params: p }) => [p.name, p.length, p.shown, p.look].join(),
  scene, reached, build,
  play: (app, how, dt, now) => walk(app, "position", "position", false, app.params.shown / 14, dt, now),
};
