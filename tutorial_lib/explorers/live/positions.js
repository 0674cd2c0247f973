// Positions: a real model reads a sentence; its positions are switched off.
import { canvas, hover, html, named, range, say, set, slide, slider, speak, svg, walk } from "./kit.js";

const MODES = ["as trained", "switched off"];

// ---- numbers: the same as Python's ----
const seen = token => token || "↵";
const best = (row, mode, shown) => row.slice(2).sort((a, b) => b[1 + mode] - a[1 + mode]).slice(0, shown);

export function scene(p, data) {
  const { record, shown } = data,  mode = MODES.indexOf(p.positions), rows = record[p.text], row = rows[p.word], guesses = best(row, mode, shown);
  const read = rows.slice(0, p.word + 1).map(each => each[0]).join(" ").replaceAll(" ,", ",");
  const [first, second] = guesses.map(guess => speak`“${seen(guess[0])}” with ${guess[1 + mode].toFixed(3)}`);
  const [comes, on, ...others] = row[2], now = mode ? others[mode - 1] : on;
  const result = mode ? speak`“${comes}”, which really comes, had ${on.toFixed(3)} and has ${now.toFixed(3)} with positions ${named("positions", p.positions, data)}.`
    : speak`With its positions the model gives ${on.toFixed(3)} to “${comes}”, the word that really comes.`;
  return { result, views: { text: [0, 1].map(n => rows.map(each => each[2][1 + n])), next: guesses.map(guess => guess.slice(1)) },
    description: speak`SmolLM2, positions ${named("positions", p.positions, data)}, has read “${read}”. It expects ${first} and ${second}; “${row[1]}” comes next.` };
}
export function reached(p, { record }) {
  const [comes, on, off] = record[p.text][p.word][2];
  return p.positions === MODES[0] || off <= on ? ""
    : speak`“${comes}” had ${on.toFixed(3)} as trained, and has ${off.toFixed(3)} now.`;
}

// ---- the picture ----
function build(app, stage) {
  const { params: p, data } = app, paints = [sentence(app, html(stage, "div")), guesses(app, html(stage, "div"))];
  return () => {
    const mode = MODES.indexOf(p.positions), rows = data.record[p.text];
    paints.forEach(paint => paint({ mode, rows, row: rows[p.word] }));
  };
}

/** The words in lines; above each, the probability that it had as trained, and has now. */
function sentence(app, parent) {
  const { params: p, data } = app, W = app.width(parent), high = app.small ? 40 : 52, gap = 7, line = high + 42;
  const all = data.record[p.text], words = [all[0][0], ...all.map(row => row[1])], fs = W < 500 ? 15 : 18;
  let x = 0, y = 0;
  const places = words.map(word => {
    const w = Math.max(34, word.length * 0.58 * fs + 12);
    if (x + w > W) [x, y] = [0, y + line];
    x += w + gap;
    return { x: x - w - gap, y, w };
  });
  const [pic, pen] = canvas(parent, W, y + line + 4, speak`The sentence; a bar over each word is the probability that it had`);
  const parts = words.map((word, n) => {
    const { x: left, y: top, w } = places[n], base = top + high, g = pen.g({ still: 1 });
    const room = svg(g, "rect", { x: left + 3, width: w - 6, y: top + 4, height: high - 4, rx: 3, fill: "--face" });
    const old = svg(g, "rect", { x: left + 3, width: w - 6, rx: 3, fill: "--mix2" }), now = svg(g, "rect", { x: left + 8, width: w - 16, rx: 2, fill: "--mix" });
    const text = svg(g, "text", { x: left + w / 2, y: base + 18, mid: 1, fs, still: 1, translate: "no" }, word);
    if (!n) set(room, { visibility: "hidden" });
    return { n, base, old, now, text };
  });
  const frame = pen.rect({ height: 28, rx: 7, fill: "#0000", stroke: "--mix", sw: 2.5 });
  slider(app, frame, "word", speak`the model has read up to`, () => speak`“${words[p.word]}”, and “${words[p.word + 1]}” comes next`);
  const area = pen.rect({ width: W, height: y + line, fill: "#0000", style: "cursor:pointer;touch-action:pan-y" });
  slide(app, area, "word", to => {
    const far = ({ x: left, y: top, w }) => 9 * Math.abs(top + line / 2 - to.y) + Math.abs(left + w / 2 - to.x);
    return range(all.length).reduce((near, n) => (far(places[n]) < far(places[near]) ? n : near));
  }, true);
  const value = (rows, n, mode) => (n ? rows[n - 1][2][1 + mode] : 0);
  hover(app, pic, to => {
    const n = places.findIndex(({ x: left, y: top, w }) => to.x >= left && to.x <= left + w && to.y >= top && to.y <= top + line - 6);
    return n > 0 && speak`“${words[n]}”: ${all[n - 1][2][1].toFixed(3)} as trained, ${all[n - 1][2][2].toFixed(3)} switched off`;
  });
  return ({ rows, mode }) => {
    for (const { n, base, old, now, text } of parts) {
      const tall = (high - 8) * app.glide(`p${n}`, value(rows, n, mode), 1e-3), was = (high - 8) * value(rows, n, 0);
      set(now, { y: base - tall, height: tall });
      set(old, { y: base - was, height: was, visibility: mode ? "visible" : "hidden" });
      set(text, n > p.word ? { fill: n === p.word + 1 ? "--k" : "--soft", fw: n === p.word + 1 ? 700 : 400 } : { fill: "--ink", fw: 700 });
    }
    const { x: left, y: top, w } = places[p.word];
    set(frame, { x: app.glide("x", left, 0.5), y: app.glide("y", top, 0.5) + high + 4, width: app.glide("w", w, 0.5) });
  };
}

/** What the model expects after the framed word: bars, with those of the other mode pale. */
function guesses(app, parent) {
  const { data, params: p } = app, W = app.width(parent), narrow = W < 500, high = app.small ? 22 : 27, top = 34;
  const left = narrow ? 84 : 120, last = W - (narrow ? 62 : 190), x = v => left + v * (last - left);
  const [, pen] = canvas(parent, W, top + data.shown * high + 22, speak`What the model expects next`);
  const head = pen.text({ x: 0, y: 16, fill: "--ink", fw: 700, fs: narrow ? 14 : 16 });
  for (const v of [0, 0.25, 0.5, 0.75, 1]) {
    pen.line({ x1: x(v), x2: x(v), y1: top - 4, y2: top + data.shown * high, stroke: "--line", sw: v ? 1 : 2 });
    pen.text({ x: x(v), y: top + data.shown * high + 15, ta: "middle", fs: 11.5 }, v);
  }
  const rows = range(data.shown).map(i => {
    const y = top + i * high;
    return { word: pen.text({ x: left - 8, y: y + high / 2, ta: "end", vc: 1, fs: narrow ? 14 : 16, fw: 700, translate: "no" }),
      old: pen.rect({ x: left, y: y + 3, height: high - 6, rx: 3, fill: "--mix2" }), now: pen.rect({ x: left, y: y + 7, height: high - 14, rx: 2, fill: "--mix" }),
      number: pen.text({ y: y + high / 2, vc: 1, halo: 1, fs: 14, fw: 700, fill: "--mix" }) };
  });
  return ({ row, mode }) => {
    say(head, narrow ? speak`after “${row[0]}”, probability:`
      : speak`After “${row[0]}” it expects, with probability (positions ${named("positions", p.positions, data)}):`);
    const found = best(row, mode, data.shown);
    rows.forEach(({ word, old, now, number }, i) => {
      const [token, ...both] = found[i], long = app.glide(`bar${i}`, both[mode], 1e-3);
      say(word, seen(token));
      set(word, { fill: token === row[1] ? "--k" : "--ink" });
      set(now, { width: x(long) - left });
      set(old, { width: x(both[0]) - left, visibility: mode ? "visible" : "hidden" });
      set(number, { x: x(Math.max(long, mode ? both[0] : 0)) + 7 });
      say(number, mode && !narrow ? speak`${both[mode].toFixed(3)}  (was ${both[0].toFixed(3)})` : both[mode].toFixed(3));
    });
  };
}

export const positions = {
  title: speak`A model reads; its positions are switched off`, question: speak`What does the model expect if its positions are switched off?`,
  smooth: ["word"], slide: ["positions"],
  plays: { read: speak`read on` }, shape: ({ params }) => params.text, scene, reached, build,
  play: (app, how, dt, now) => walk(app, "word", "word", false, 1.6, dt, now),
};
