// Order: drag the words of a sentence to other places; whose vector changes, and why?
import { STEPS, canvas, clamp, drag, hover, html, list, minus, named, pens, range, say, set, speak, svg } from "./kit.js";

const FIRST = "cat chases dog", WORDS = FIRST.split(" ");
// 猫, 追 and 狗 by strokes on a field of 100 × 100: not every device has a font for them
const BEAST = "M37 8Q28 24 10 35M18 20Q38 40 34 78Q33 90 20 84M32 46Q24 64 7 76";
const STROKES = {
  cat: `${BEAST}M44 23H96M59 10V35M81 10V35M49 45H92V90H49ZM49 67H92M70 45V90`,
  chases: "M62 6L53 20M47 21V72M47 21H83V41H47M47 52H87V72H47M14 12L26 25M8 42H28Q16 58 28 64Q24 76 8 84Q26 74 40 82Q62 92 95 88",
  dog: `${BEAST}M58 6Q54 24 43 38M54 23H93Q94 70 89 84Q86 92 75 85M52 45H76V70H52Z`,
};

// ---- numbers: the same as Python's ----
/** The vector of each word of WORDS. */
function outputs(p, { numbers, parameters }, order = p.order) {
  const now = numbers[`${p.position} ${p.mask} ${p.layers}`][parameters.order.values.indexOf(order)];
  return now.map(row => row.map(v => v / 100));
}
const mean = rows => rows[0].map((_, i) => rows.reduce((sum, row) => sum + row[i], 0) / rows.length);

/**
 * All that each word can know after each layer, `[layers + 1][word of WORDS]`: itself, its position if it has one,
 * and what the words that it sees knew. Without positions they have no order. Equal knowledge, equal vector.
 */
export function knowledge({ position, mask, layers }, order) {
  const names = order.split(" "), levels = [names.map((word, i) => (position === "none" ? word : word + i))];
  for (const _ of range(layers)) {
    const last = levels.at(-1);
    levels.push(last.map((own, i) => `${own}(${last.filter((__, j) => mask === "none" || j <= i).sort()})`));
  }
  return levels.map(level => WORDS.map(word => level[names.indexOf(word)]));
}
/** Which words have changed after each layer, compared with “cat chases dog”. */
export function changed(p) {
  const before = knowledge(p, FIRST);
  return knowledge(p, p.order).map((level, l) => level.map((known, i) => known !== before[l][i]));
}

export function scene(p, data) {
  const now = outputs(p, data), before = outputs(p, data, FIRST), names = p.order.split(" ");
  const change = now.map((row, i) => row.map((v, c) => v - before[i][c])), own = changed(p).at(-1);
  const others = [...own, own.some(Boolean)], which = is => list([...WORDS, speak`mean`].filter((_, i) => others[i] === is)) || speak`nothing`;
  const verdict = p.order === FIRST ? speak`This is the sentence that the others are compared with.`
    : speak`Compared with “${FIRST}”, changed: ${which(true)}; the same: ${which(false)}.`;
  const mask = named("mask", p.mask, data), position = named("position", p.position, data);
  return { views: { output: [...names.map(word => now[WORDS.indexOf(word)]), mean(now)], change: [...change, mean(change)] },
    description: p.layers > 1 ? speak`2 layers, mask ${mask}, positions ${position}: “${p.order}”. ${verdict}`
      : speak`1 layer, mask ${mask}, positions ${position}: “${p.order}”. ${verdict}` };
}
export function reached(p, data) {
  if (p.position !== "none" || !p.order.endsWith("dog") || !changed(p).at(-1)[2]) return "";
  const [a, b] = [outputs(p, data)[2], outputs(p, data, FIRST)[2]];
  return speak`its vector changed by ${Math.max(...a.map((v, i) => Math.abs(v - b[i]))).toFixed(2)}.`;
}

// ---- the picture ----
/** Without positions and with them, in a sentence. */
function lesson(p) {
  const own = changed(p).at(-1), many = own.filter(Boolean).length;
  if (p.order === FIRST) return speak`Drag a word to another place.`;
  if (!many) return speak`Each vector goes along with its word, and the mean stays the same: who chases whom?`;
  const who = WORDS.filter((_, i) => own[i]).map(word => `“${word}”`).join(speak` and `);
  return many === 3 ? speak`Every vector has changed, and so has the mean: now the order shows.`
    : speak`${who} changed, and so did the mean: some of the order shows.`;
}

function build(app, stage) {
  const { params: p, data } = app, toy = app.small === "toy", W = Math.max(app.width(stage), 240), narrow = W < 560;
  const left = toy || narrow ? 4 : 112, gap = narrow ? 6 : 16, wide = (W - left - 3 * gap) / 4;
  const column = i => left + i * (wide + gap) + wide / 2, middle = column(3);
  const chip = { y: 26, high: 46, wide: Math.min(wide - 4, 128) }, step = app.small ? 54 : 66;
  const web = toy ? 0 : 20 + p.layers * step, top = chip.y + 34 + web, cell = (wide - 4) / data.numbers["none none 1"][0][0].length;
  const tall = toy ? 26 : 30, second = top + tall + (toy ? 8 : 30), H = (toy ? top + tall + 28 : second + tall + (narrow ? 22 : 6));
  const [pic, pen] = canvas(stage, W, H, speak`A sentence, and the vector of each word`);
  const colours = range(data.palette.length / 6).map(i => `#${data.palette.slice(6 * i, 6 * i + 6)}`);
  const colour = v => colours[clamp(Math.round((v / 5 + 0.5) * (colours.length - 1)), 0, colours.length - 1)];
  const side = (y, words, more = {}) => (left > 50 ? pen.text({ x: left - 14, y, ta: "end", vc: 1, ...more }, words) : null);
  if (!app.small) side(chip.y, speak`drag a word`, { fill: "--ink", fw: 700 });
  if (!toy) {
    for (const l of range(p.layers)) side(chip.y + 34 + (l + 0.75) * step, p.mask === "none" ? speak`layer ${l + 1}` : speak`layer ${l + 1} sees`);
    if (p.mask !== "none") for (const l of range(p.layers)) side(chip.y + 34 + (l + 0.75) * step + 16, speak`the past`);
    side(top + tall / 2, speak`vector now`);
    side(second + tall / 2 - 8, speak`in the order`);
    side(second + tall / 2 + 8, FIRST, { translate: "no" });
    const below = { y: second + tall + 14, fs: 12, fill: "--soft" };
    if (narrow) pen.text({ x: left + 8 + pen.text({ x: left + 2, ...below }, speak`in the order`).getComputedTextLength(), translate: "no", ...below }, FIRST);
  }
  pen.text({ x: middle, y: chip.y, mid: 1, fw: 700, fill: "--ink", fs: narrow ? 14 : 16 }, speak`mean`);
  for (const i of range(3)) { // the places
    pen.rect({ x: column(i) - chip.wide / 2 - 3, width: chip.wide + 6, y: chip.y - chip.high / 2 - 3, height: chip.high + 6, rx: 12,
      fill: "none", stroke: "--line", dash: "4 4" });
  }
  const levels = toy ? 0 : p.layers, y = l => (l ? chip.y + 34 + (l - 0.25) * step : chip.y + chip.high / 2);
  const edges = range(levels).flatMap(l => range(3).flatMap(a => range(3).map(b => [l, a, b, pen.path({ fill: "none", cap: 1 })])));
  const down = toy ? [] : WORDS.map(() => pen.path({ stroke: "--soft", sw: 1.5 }));
  const pooled = toy ? [] : WORDS.map(() => pen.path({ fill: "none", stroke: "--soft", sw: 1.5 }));

  /** A vector as a row of colours. */
  function strip(parent, at, small) {
    const boxes = range(Math.round((wide - 4) / cell)).map(i => svg(parent, "rect", { x: -wide / 2 + 2 + i * cell, width: cell + 0.3,
      y: at, height: small }));
    const frame = svg(parent, "rect", { x: -wide / 2 + 2, width: wide - 4, y: at, height: small, rx: 3, fill: "none" });
    return { frame, paint: (row, how) => { row.forEach((v, i) => set(boxes[i], { fill: colour(v) })); set(frame, how); } };
  }
  const columns = [...WORDS, "mean"].map((word, w) => {
    const g = pen.g(), rows = [strip(g, top, tall)];
    if (!toy) rows.push(strip(g, second, tall));
    const sign = svg(g, "text", { x: 0, y: toy ? top + tall + 16 : (top + tall + second) / 2, mid: 1, fw: 700, fs: narrow ? 12 : 14 });
    const nodes = range(w < 3 ? levels : 0).map(l => svg(g, "circle", { cy: y(l + 1), r: 11, sw: 2 }));
    hover(app, g, to => {
      const now = outputs(p, data), row = w < 3 ? now[w] : mean(now);
      return to.y > top && speak`${w < 3 ? word : speak`mean`}: ${row.map(v => minus(v.toFixed(2))).join("  ")}`;
    });
    return { word, g, rows, sign, nodes };
  });

  // -- the words: dragged, or moved by the arrow keys --
  let held = null, heldX = 0;
  const names = () => p.order.split(" ");
  function move(word, to) {
    const rest = names().filter(each => each !== word);
    rest.splice(clamp(to, 0, 2), 0, word);
    if (rest.join(" ") !== p.order) app.set({ order: rest.join(" ") });
    else app.wake();
  }
  const chips = [...names()].map(word => { // Tab, too, comes last to the last word
    const g = pen.g({ class: "lv-grip" }), own = pens(g), i = WORDS.indexOf(word);
    own.rect({ x: -chip.wide / 2, width: chip.wide, y: -chip.high / 2, height: chip.high, rx: 10, class: "lv-ring" });
    own.rect({ x: -chip.wide / 2, width: chip.wide, y: -chip.high / 2, height: chip.high, rx: 10, fill: "--ink", rim: 1 });
    const size = narrow ? 0.21 : 0.3, [sx, sy] = narrow ? [-50 * size, -20] : [-chip.wide * 0.4, -50 * size];
    own.path({ d: STROKES[word], fill: "none", stroke: "--paper", sw: 7.5, cap: 1, "stroke-linejoin": "round", still: 1,
      transform: `translate(${sx} ${sy}) scale(${size})` });
    own.text({ x: narrow ? 0 : chip.wide * 0.17, y: narrow ? 13 : 0, mid: 1, fill: "--paper", fs: narrow ? 12 : 15, still: 1, translate: "no" }, word);
    set(g, { tabindex: 0, role: "slider", "data-key": word, "aria-label": speak`place of “${word}”` });
    drag(app, g, word, {
      down(to) { app.pause(); held = word; heldX = to.x; app.wake(); },
      move(to) { heldX = to.x; move(word, Math.round((to.x - column(0)) / (wide + gap))); },
      up() { held = null; },
    });
    g.addEventListener("keydown", event => {
      if (!(event.key in STEPS)) return;
      event.preventDefault();
      app.pause();
      move(word, names().indexOf(word) + STEPS[event.key]);
    });
    app.told.push(() => {
      const place = names().indexOf(word);
      set(g, { "aria-valuemin": 0, "aria-valuemax": 2, "aria-valuenow": place, "aria-valuetext": speak`${place + 1} of 3: ${p.order}` });
    });
    return { word, g, i };
  });
  const words = html(stage, "p", { class: "lv-lesson" });

  return () => {
    const now = outputs(p, data), before = outputs(p, data, FIRST), change = changed(p), order = names(), end = change.at(-1);
    const xs = WORDS.map(word => app.glide(`x ${word}`, held === word ? clamp(heldX, column(0) - 20, column(2) + 20) : column(order.indexOf(word))));
    chips.forEach(({ g, i }) => set(g, { transform: `translate(${xs[i].toFixed(1)} ${chip.y})` }));
    columns.forEach(({ g, rows, sign, nodes }, w) => {
      const other = w < 3 ? end[w] : end.some(Boolean), all = [now, before].map(each => (w < 3 ? each[w] : mean(each)));
      set(g, { transform: `translate(${(w < 3 ? xs[w] : middle).toFixed(1)} 0)` });
      rows.forEach((row, i) => row.paint(all[i], i || p.order === FIRST ? { stroke: "--line", sw: 1 }
        : { stroke: other ? "--k" : "--mix", sw: 2.5 }));
      say(sign, p.order === FIRST ? "" : other ? speak`≠ changed` : speak`= the same`);
      set(sign, { fill: other ? "--k" : "--mix" });
      nodes.forEach((node, l) => set(node, change[l + 1][w] ? { fill: "--k", stroke: "--k" } : { fill: "--paper", stroke: "--soft" }));
    });
    for (const [l, a, b, edge] of edges) { // what b of layer l + 1 gets from a
      const seen = p.mask === "none" || order.indexOf(WORDS[a]) <= order.indexOf(WORDS[b]), from = xs[a], news = change[l][a];
      set(edge, { d: `M${from.toFixed(1)} ${y(l) + (l ? 11 : 0)}C${from.toFixed(1)} ${y(l) + 30} ${xs[b].toFixed(1)} ${y(l + 1) - 36} ${xs[b].toFixed(1)} ${y(l + 1) - 11}`,
        visibility: seen ? "visible" : "hidden", stroke: news ? "--k" : "--soft", sw: news ? 2.5 : 1.3, opacity: news ? 1 : 0.55 });
    }
    down.forEach((line, w) => set(line, { d: `M${xs[w].toFixed(1)} ${y(p.layers) + 11}V${top - 2}` }));
    pooled.forEach((line, w) => set(line, { d: `M${xs[w].toFixed(1)} ${top - 21}q0 8 8 8H${middle - 8}q8 0 8 8V${top - 2}` }));
    say(words, app.small && p.order === FIRST ? "" : lesson(p)); // there the question says what to do
  };
}

export const permutation = {
  title: speak`Order: words change places`, question: speak`Shuffle the words: does any vector notice?`,
  drawn: ["order"], slide: ["position", "mask", "layers"], toy: ["position"],
  plays: { shuffle: speak`shuffle` }, shape: ({ params: p }) => [p.layers, p.mask].join(),
  scene, reached, build,
  play(app, how, dt, now) { // a new order every second
    if (now - (app.step ?? 0) < 1100 / app.speed) return;
    app.step = now;
    const { values } = app.table.order;
    app.set({ order: values[(values.indexOf(app.params.order) + 1) % values.length] }, true);
  },
};
