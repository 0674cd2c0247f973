// Hybrid scores: a mixing desk whose strips add up, key by key, and a softmax that ignores what is flat.
import { canvas, drag, grip, hover, minus, pens, range, say, scale, set, signed, slide, slider, svg, walk } from "./kit.js";

const N = 4, ALL = range(N), AT = [1, 2];

// ---- numbers: the same as Python's ----
const table = cell => ALL.map(i => ALL.map(j => cell(i, j)));
const termOf = without => without.replace("_half", "");
const softmax = row => {
  const powers = row.map(v => Math.exp(v - Math.max(...row))), sum = powers.reduce((a, b) => a + b);
  return powers.map(v => v / sum);
};
/** All of one mix; `scales` are whole in `scene`, and on their way in the picture. */
function mixed(scales, without, { names, terms }) {
  const on = Object.keys(names).filter(name => name in scales), { [without]: out } = terms;
  const e = table((i, j) => on.reduce((sum, name) => sum + scales[name] * terms[name][i][j], 0));
  const taken = table((i, j) => scales[termOf(without)] * out[i][j]);
  const rest = e.map((row, i) => softmax(row.map((v, j) => v - taken[i][j]))), full = e.map(softmax);
  const change = table((i, j) => Math.round(1e12 * (full[i][j] - rest[i][j])) / 1e12);
  const size = taken.flat().map(Math.abs), moved = change.flat().map(Math.abs);
  return { e, rest, full, change, least: Math.min(...size), most: Math.max(...size), moved: Math.max(...moved) };
}
const limitOf = (e, limits) => limits.find(limit => Math.max(...e.flat().map(Math.abs)) <= limit) ?? limits.at(-1);

export function scene({ without, ...p }, data) {
  const { names, terms } = data, [i, j] = AT, m = mixed(p, without, data), name = names[without];
  const on = Object.keys(names).filter(term => p[term]), at = m.e[i][j], weight = m.full[i][j];
  const said = on.map(term => (p[term] > 1 ? `${p[term]}·` : "") + names[term]).join(" + ") || "0";
  const numbers = on.map(term => (p[term] * terms[term][i][j]).toFixed(2)).join(" + ").replaceAll("+ -", "- ") || "0";
  const seen = !m.most ? `${name} is off` : `${name} changes the logits by ${m.least.toFixed(2)} to ${m.most.toFixed(2)} and ${
    m.moved ? `the weights by up to ${m.moved.toFixed(2)}` : "no weight: the softmax does not see it"}`;
  return { views: { logits: m.e, change: m.change }, readouts: {
    logits: `i = 1, j = 2: ${said} = ${numbers} = ${at.toFixed(2)}`,
    change: `i = 1, j = 2: weight ${weight.toFixed(4)}, without ${(weight - m.change[i][j]).toFixed(4)}`,
  }, description: `Logits of ${N} tokens, e_ij = ${said}; ${seen}; marked is i = 1, j = 2, with the logit ${
    at.toFixed(2)} and the weight ${weight.toFixed(2)}.` };
}
export function reached({ without, ...p }, data) {
  const { least, moved } = mixed(p, without, data);
  return least <= 1 || moved ? "" : `${data.names[without]} changes every logit by ${
    least.toFixed(2)} or more, and no weight by more than one part in 10¹².`;
}

// ---- the picture ----
const FADERS = ["content", "query", "relative", "concat", "key", "tupe", "mlp"];

/** A row or a square of coloured cells with their numbers; the function that is returned fills a row. */
function cells(pen, palette, x, y, wide, high, rows, places) {
  const g = pen.g(), own = pens(g), made = range(rows * N).map(n => {
    const at = { x: x + (n % N) * wide, y: y + Math.floor(n / N) * high }, words = wide > 30;
    return [own.rect({ ...at, width: wide - 1.5, height: high - 1.5, rx: words ? 4 : 0 }),
      words && own.text({ x: at.x + wide / 2 - 1, y: at.y + high / 2, mid: 1, still: 1, fs: wide > 44 ? 13 : 11 })];
  });
  const paint = (i, values, limit, off) => values.forEach((v, j) => {
    const [box, text] = made[i * N + j], { fill, ink } = signed(palette, v / limit);
    set(box, { fill });
    if (!text) return;
    set(text, { fill: ink });
    say(text, off ? "" : minus(v.toFixed(places)).replace(/^−(0\.?0*)$/, "$1"));
  });
  return Object.assign(paint, { g });
}

function build(app, stage) {
  const { params: p, data } = app, { names, terms, palette } = data, narrow = stage.clientWidth < 600, W = app.width(stage);
  const tall = app.small ? 23 : narrow ? 38 : 43, y0 = 24, sums = y0 + 7 * tall + 10, bars = sums + tall + 2, high = app.small ? 50 : 124;
  const end = bars + high + 36, wide = narrow ? 37 : app.small ? 56 : 72, x1 = narrow ? W - 4 * wide : app.small ? 320 : 350;
  const track = narrow ? [112, 178] : app.small ? [136, 236] : [146, 262], mini = x1 - tall - 10, squares = narrow ? end + 56 : 0;
  const edge = narrow ? (W - 66) / 2 : app.small ? 118 : 204, H = narrow ? squares + edge + 36 : end;
  const [pic, pen] = canvas(stage, W, H, "A mixing desk of terms, their sum, and the weights");
  const x = scale(0, 4, ...track), lane = n => y0 + (n + 0.5) * tall;
  ALL.forEach(j => pen.text({ x: x1 + (j + 0.5) * wide - 1, y: 12, mid: 1, fill: "--k", fw: 700 }, narrow ? `j=${j}` : `key ${j}`));
  if (!narrow) pen.text({ x: (track[0] + track[1]) / 2, y: 12, mid: 1 }, "volume");

  // -- one lane for each term: its name, a fader, its square, and its row for the query --
  const chosen = pen.rect({ x: -6, width: track[0] - 20, height: tall - 6, rx: 8, fill: "--mix2", stroke: "--mix", sw: 2 });
  const query = grip(app, pic, "q", "row", "i", "query i"); // before the faders, which Python knows, too
  const lanes = FADERS.map((name, n) => {
    const y = lane(n), title = pen.text({ x: 0, y, vc: 1, fs: narrow ? 12.5 : 14, style: "cursor:pointer" }, names[name]);
    title.addEventListener("click", () => app.set({ without: name }));
    hover(app, title, () => "Click to compare the weights with and without this term");
    const rail = pen.g({ style: "cursor:pointer" });
    svg(rail, "rect", { x: x(0) - 12, width: x(4) - x(0) + 24, y: y - tall / 2 + 1, height: tall - 2, fill: "#0000" });
    svg(rail, "line", { x1: x(0), x2: x(4), y1: y, y2: y, stroke: "--line", sw: 3, cap: 1 });
    const lit = svg(rail, "line", { x1: x(0), y1: y, y2: y, stroke: "--mix", sw: 3, cap: 1 });
    svg(rail, "path", { d: range(5).map(v => `M${x(v)} ${y}h0`).join(""), stroke: "--soft", sw: 5, cap: 1 });
    const knob = svg(pic, "g", { class: "lv-grip" });
    svg(knob, "circle", { r: 19, fill: "#0000" });
    svg(knob, "circle", { r: 15, class: "lv-ring" });
    const cap = svg(knob, "circle", { r: app.small ? 9.5 : 11.5, sw: 2 });
    const text = svg(knob, "text", { mid: 1, fw: 700, fs: 13, still: 1 });
    slider(app, knob, name, `volume of ${names[name]}`, () => `${p[name]} times`);
    for (const node of [rail, knob]) slide(app, node, name, to => x.back(to.x), true);
    return { name, title, lit, knob, cap, text, square: !narrow && cells(pen, palette, mini, y - tall / 2 + 3, (tall - 6) / N, (tall - 6) / N, N),
      frame: !narrow && pen.rect({ x: mini - 2, width: tall - 3.5, height: (tall - 6) / N + 2.5, fill: "none", stroke: "--q", sw: 2, rx: 1 }),
      row: cells(pen, palette, x1, y - tall / 2 + 3, wide, tall - 6, 1, 2) };
  });

  // -- their sum, and its softmax --
  pen.line({ x1: x1 - 4, x2: x1 + N * wide + 2, y1: sums - 5, y2: sums - 5, stroke: "--ink", sw: 2 });
  const mark = (y, words, more) => pen.text({ x: x1 - 14, y, ta: "end", vc: 1, fill: "--ink", fw: 700, ...more }, words);
  const total = mark(sums + tall / 2 - 2, ""), sum = cells(pen, palette, x1, sums, wide, tall - 4, 1, 2);
  const weight = scale(0, 1, bars + high, bars + 12), base = bars + high;
  mark(bars + 20, "softmax ↓");
  pen.line({ x1: x1 - 4, x2: x1 + N * wide + 2, y1: base, y2: base, stroke: "--line", sw: 2 });
  const columns = ALL.map(j => {
    const at = x1 + j * wide + wide * 0.12, half = wide * 0.36;
    return [pen.rect({ x: at, width: half, rx: 2, fill: "--mix2", stroke: "--mix", sw: 1, dash: "3 2" }),
      pen.rect({ x: at + half + 1, width: half, rx: 2, fill: "--mix" }),
      pen.text({ x: x1 + (j + 0.5) * wide - 1, y: base + 14, ta: "middle", fill: "--ink", fs: wide > 44 ? 13 : 11 })];
  });
  const below = pen.text({ x: narrow ? W : x1 + N * wide / 2, y: base + 32, ta: narrow ? "end" : "middle" });
  const lines = range(3).map(n => pen.text({ x: 0, y: (narrow ? squares - 32 : bars + (app.small ? 34 : 58)) + (narrow ? 0 : n * 23), fs: 15,
    fill: n === 2 ? "--mix" : "--ink", fw: n === 1 ? 400 : 700 }));

  // -- all queries: scores, and what the chosen term changes in the weights --
  const side = edge / N, left = narrow ? 46 : W - edge, squares_ = ["scores e_ij", narrow || app.small ? "change of weights" : "change of the weights"].map((words, n) => {
    const at = narrow ? [left + n * (edge + 20), squares] : [left, n * (edge + 44) + 24];
    pen.text({ x: at[0], y: at[1] - 9, fill: "--ink", fw: 700, fs: narrow ? 12.5 : 13 }, words);
    return { at, paint: cells(pen, palette, ...at, side, side, N, n ? 2 : 1),
      frame: pen.rect({ x: at[0] - 2, width: edge + 2.5, height: side + 2.5, fill: "none", stroke: "--q", sw: 2.5, rx: 4 }) };
  });
  const [{ at: first }] = squares_;
  const row = to => (to.y - first[1]) / side - 0.5;
  slide(app, query, "row", row);
  for (const { at } of squares_) {
    const area = pen.rect({ x: at[0], y: at[1], width: edge, height: edge, fill: "#0000", style: "cursor:pointer;touch-action:pan-y" });
    drag(app, area, "row", { down: to => app.hold("row", (to.y - at[1]) / side - 0.5), move: to => app.hold("row", (to.y - at[1]) / side - 0.5) });
  }
  const name = pen.text({ x: first[0] - 38, vc: 1, ta: "end", fill: "--q", fw: 700, fs: 14 });

  return () => {
    const scales = Object.fromEntries(FADERS.map(term => [term, app.shown[term]])), i = p.row, own = termOf(p.without);
    const m = mixed(scales, p.without, data), limit = limitOf(m.e, data.limits), now = mixed(p, p.without, data);
    for (const { name: term, title, lit, knob, cap, text, square, frame, row: strip } of lanes) {
      const s = app.shown[term], on = p[term] > 0, n = FADERS.indexOf(term);
      set(knob, { transform: `translate(${x(s)} ${lane(n)})` });
      set(lit, { x2: x(s) });
      set(cap, { fill: on ? "--mix" : "--paper", stroke: on ? "--paper" : "--soft" });
      set(text, { fill: on ? "--paper" : "--soft" });
      say(text, p[term]);
      set(title, { fill: on || term === own ? "--ink" : "--soft", fw: on ? 700 : 400 });
      strip(0, terms[term][i].map(v => s * v), limit, !s);
      for (const { g } of [strip, ...(square ? [square] : [])]) set(g, { opacity: Math.min(1, 0.22 + s) });
      if (square) ALL.forEach(r => square(r, terms[term][r].map(v => s * v), limit));
      if (frame) set(frame, { y: lane(n) - tall / 2 + 2 + app.shown.row * (tall - 6) / N });
    }
    set(chosen, { y: app.glide("chosen", lane(FADERS.indexOf(own))) - tall / 2 + 3 });
    sum(0, m.e[i], limit);
    say(total, narrow ? `score e_${i}j` : `sum: the score e_${i}j`);
    say(below, `weights of query ${i}: without ${narrow ? "it (pale)" : data.names[p.without]}, and with it`);
    columns.forEach(([before, after, text], j) => {
      [[before, m.rest], [after, m.full]].forEach(([bar, of]) => set(bar, { y: weight(of[i][j]), height: base - weight(of[i][j]) }));
      say(text, m.full[i][j].toFixed(2));
    });
    const out = data.names[p.without], off = !now.most;
    const told = narrow ? [off ? `${out} is off` : `${out} changes ${now.moved ? `weights by ≤ ${now.moved.toFixed(2)}` : "no weight"}`]
      : off ? [out, "is off: turn it up"] : [out, `moves scores by ${now.least.toFixed(2)} to ${now.most.toFixed(2)},`,
        now.moved ? `weights by up to ${now.moved.toFixed(2)}` : "and not a single weight"];
    lines.forEach((line, n) => say(line, told[n] ?? ""));
    ALL.forEach(r => {
      squares_[0].paint(r, m.e[r], limit);
      squares_[1].paint(r, m.change[r], 1);
    });
    const y = app.shown.row * side;
    squares_.forEach(({ at, frame }) => set(frame, { y: at[1] - 2 + y }));
    set(query, { transform: `translate(${first[0] - 22} ${first[1] + y + side / 2})` });
    set(name, { y: first[1] + y + side / 2 });
    say(name, narrow ? "" : `i = ${i}`);
  };
}

export const hybrid = {
  title: "Hybrid scores: a mixing desk, and a softmax that does not hear all of it",
  smooth: [...FADERS, "row"], slide: ["without"], own: { row: { label: "query i", size: N, start: 1 } },
  plays: { swell: "up and down" }, shape: () => "", scene, reached, build,
  play: (app, how, dt, now) => walk(app, termOf(app.params.without), termOf(app.params.without), false, 2.2, dt, now),
};
