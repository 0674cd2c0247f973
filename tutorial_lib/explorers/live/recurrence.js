// Segment recurrence: a memory that travels with the text, and how far back each layer reaches through it.
import { axes, canvas, clamp, clipped, drag, grip, hover, minus, range, say, scale, set, slide, speak,
  svg, tag, through, walk } from "./kit.js";

// ---- numbers: the same as Python's ----
/** A number of things: one, many, and where that can happen, none. */
const count = {
  layer: n => (n === 1 ? speak`1 layer` : speak`${n} layers`), key: n => (n === 1 ? speak`1 key` : speak`${n} keys`),
  token: n => (n === 1 ? speak`1 token` : speak`${n} tokens`), offset: n => (n === 1 ? speak`1 offset` : speak`${n} offsets`),
  position: n => (n === 1 ? speak`1 position` : speak`${n} positions`),
  collision: n => (n ? n === 1 ? speak`1 collision` : speak`${n} collisions` : speak`no collisions`),
  state: n => (n ? n === 1 ? speak`1 state` : speak`${n} states` : speak`no states`),
  place: n => (n ? n === 1 ? speak`1 place` : speak`${n} places` : speak`no places`),
};
const startOf = (token, { segment }) => token - token % segment;
/** The first token that each layer's states of `query` depend on, from the last layer down to the tokens. */
export function firsts(p) {
  const found = [p.query];
  for (const n of range(p.layers)) found.push(Math.max(0, startOf(found[n], p) - p.memory));
  return found;
}
/** What a state is to the query: 1 older, 2 memory, 3 its own segment, 0 nothing that it depends on. */
function kind(token, first, p) {
  if (token < first || token > p.query) return 0;
  const start = startOf(p.query, p);
  return token >= start ? 3 : token >= start - p.memory ? 2 : 1;
}
/** How alike two positions are whose offset is `r`: the mean of the cosines, 1 at r = 0. */
const near = (r, { width }) => range(width / 2).reduce((sum, t) => sum + Math.cos(r * 10000 ** (-2 * t / width)), 0) / (width / 2);
const keysOf = p => range(p.query + 1).slice(firsts(p)[1]);
const twinOf = p => keysOf(p).find(j => j % p.segment === p.query % p.segment);

export function scene(p, data) {
  const { segment, memory, layers, query } = p, all = firsts(p), first = all.at(-1), start = startOf(query, p);
  const keys = keysOf(p), twin = twinOf(p), depth = count.layer(layers);
  const twins = keys.length - new Set(keys.map(j => j % segment)).size;
  const says = twin === query ? speak`no key has the index of the query but itself`
    : speak`key ${twin} has the index ${twin % segment} that the query has: a collision`;
  return { views: { states: all.map(from => range(data.length).map(j => kind(j, from, p))),
    scores: [keys.map(j => j - query), keys.map(j => near(j - query, data)), keys.map(j => near(j % segment - query % segment, data))] },
  readouts: { states: speak`token ${query} depends on token ${first}, ${query - first} places back, through ${depth}`,
    scores: `r = ${twin - query}: ${says}` },
  result: speak`Token ${query} depends on ${count.token(query - first + 1)}, back to token ${first}, although one layer looks only ${query - keys[0]} back.`,
  description: speak`Segments of ${segment} tokens, a memory of ${memory}, ${depth}: token ${query} looks at ${
    count.key(keys.length)}, from ${keys[0]} on, and through ${depth} depends on ${count.token(query - first + 1)}, from ${
    first} on, of which those from ${start} on pass gradients; ${layers} × ${memory} states are kept; the keys have ${
    count.offset(keys.length)}, but ${count.position(keys.length - twins)} if each segment counts from 0 anew: ${
    count.collision(twins)}.` };
}
export function reached(p, { length, most }) {
  const kept = p.layers * p.memory;
  return p.query < length - 1 || kept > most || firsts(p).at(-1) ? "" : speak`${p.layers} × ${p.memory} = ${count.state(kept)}, and a token ${
    p.query} places back is reached, though each layer looks back ${p.query % p.segment + p.memory} places at most.`;
}

// ---- the picture: the token blue, its memory orange, what is reached green ----
const LOOK = [["--paper", "--line", 1.2], ["--mix2", "--mix", 1.5], ["--k", "--paper", 1.5], ["--q", "--paper", 1.5]];

function build(app, stage) {
  const { params: p, data, table } = app, { length, most } = data, { layers, segment } = p, narrow = stage.clientWidth < 600, W = app.width(stage);
  const x = scale(0, length - 1, narrow ? 34 : 92, W - (narrow ? 12 : 24)), cell = x(1) - x(0), top = narrow ? 70 : 52;
  const step = clamp((app.small ? 84 : narrow ? 210 : 250) / layers, app.small ? 20 : 34, narrow ? 76 : 92), y = n => top + (layers - n) * step, ground = y(0);
  const R = clamp(Math.min(cell, step) * 0.27, 3.5, 8.5), low = ground + (narrow ? 26 : 50), head = low + (app.small ? 26 : 38), bottom = head + (app.small ? 70 : 118);
  const [pic, pen] = canvas(stage, W, bottom + 40, speak`States of a text read in segments, layer by layer`);
  const facts = [pen.text({ x: 0, y: 13, fill: "--mix", fw: 700, fs: narrow ? 13.5 : 15 }),
    pen.text(narrow ? { x: 0, y: 33, fill: "--k", fw: 700, fs: 13.5 } : { x: W, y: 13, ta: "end", fill: "--k", fw: 700, fs: 15 })];

  // -- segments, memory, the cone of what is reached --
  for (const from of range(length / segment).map(n => n * segment)) {
    if (from) pen.line({ x1: x(from - 0.5), x2: x(from - 0.5), y1: top - 18, y2: low + 6, stroke: "--line", sw: 1.5 });
  }
  const cone = pen.path({ fill: "--mix2", opacity: 0.75 });
  const box = (colour, from, to) => pen.rect({ y: from, height: to - from, rx: 9, fill: "none", stroke: colour, sw: 2, dash: colour === "--k" ? "6 4" : "none" });
  const inset = R + 7, segments = box("--q", top - inset, ground + inset), memory = box("--k", y(layers - 1) - inset, ground + inset);
  const hops = pen.path({ fill: "none", stroke: "--mix", sw: 3, cap: 1, "stroke-linejoin": "round" });
  const dots = range(layers + 1).flatMap(n => range(length).map(j => [n, j, pen.circle({ cx: x(j), cy: y(n), r: R })]));
  const names = ["--q", "--k"].map(fill => pen.text({ halo: 1, fill, fw: 700, fs: narrow ? 12 : 14, ta: "middle" }));
  if (!narrow) for (const n of range(layers + 1)) pen.text({ x: 0, y: y(n), vc: 1 }, n ? speak`layer ${n}` : speak`tokens‖name of a row`);
  const numbers = range(length).map(j => [pen.text({ x: x(j), y: ground + inset + 15, ta: "middle", fs: narrow ? 11 : 13 }, narrow && j % 4 ? "" : j),
    pen.text({ x: x(j), y: ground + inset + 33, ta: "middle", fs: app.small ? 13 : 12, display: narrow ? "none" : "inline" }, j % segment)]);
  if (!narrow) {
    pen.text({ x: 0, y: ground + inset + 15 }, speak`position`);
    pen.text({ x: 0, y: ground + inset + 33 }, speak`restarted`);
  }
  const area = pen.rect({ x: x(-0.5), width: x(length) - x(0), y: top - 18, height: low - top + 18, fill: "#0000", style: "cursor:col-resize;touch-action:pan-y" });
  slide(app, area, "query", to => x.back(to.x), true);
  hover(app, area, to => {
    const n = clamp(Math.round((ground - to.y) / step), 0, layers), j = clamp(Math.round(x.back(to.x)), 0, length - 1);
    const from = firsts(p)[layers - n], what = kind(j, from, p);
    const how = [speak`not reached`, speak`reached, through older memories`, speak`in the memory, no gradient`, speak`in the segment, with gradients`][what];
    return n ? speak`state of token ${j} after layer ${n}: ${how}` : speak`token ${j}: ${how}`;
  });
  const edge = grip(app, pic, "k", "memory", "M", speak`memory M`, () => speak`${p.memory} states a layer`);
  const token = grip(app, pic, "q", "query", "i", speak`token`, () => speak`${p.query}, depends on ${firsts(p).at(-1)} and all after it`);
  slide(app, token, "query", to => x.back(to.x));
  const { values } = table.memory, start = () => startOf(p.query, p);
  /** How many tokens are remembered, and where the edge stands, while the handle is between two values of the list. */
  const tokens = at => values[Math.floor(at)] + (at % 1) * ((values[Math.ceil(at)] ?? 0) - values[Math.floor(at)]);
  const left = at => x(start() - tokens(at) - 0.5) - 2;
  const stop = at => Math.max(left(at), x(-0.5) - 4 - 3 * at);
  const tries = range(101).map(n => n * (values.length - 1) / 100);
  drag(app, edge, "memory", { move: to => app.hold("memory", tries.reduce((best, at) =>
    (Math.abs(stop(at) - to.x) < Math.abs(stop(best) - to.x) ? at : best))) });

  // -- how near each key seems: by its offset, or by a position that restarts --
  const h = scale(0, 1.08, bottom, head);
  pen.text({ x: 0, y: head - 8, fill: "--ink", fw: 700, fs: narrow ? 12 : 13 }, narrow ? speak`how near:` : speak`how near a key seems to the token:`);
  const legend = [["--mix", speak`— by offset`], ["--k", speak`- - restarted in each segment`]];
  legend.forEach(([fill, text], n) => pen.text({ x: narrow ? (n ? W : 74) : n ? 380 : 268, y: head - 8, fill, fw: 700, fs: narrow ? 11 : 13, ta: narrow && n ? "end" : "start" },
    narrow && n ? speak`- - restarted` : text));
  axes(pic, x, h, [0, 4, 8, 12, 16, 20, 23], [0, 0.5, 1], speak`key`, bottom, length - 1);
  const moving = clipped(pic, x(0) - 6, W, bottom + 9); // drawn once; it slides with the token
  svg(moving, "path", { d: through(range(4 * length + 1).map(n => n / 4 - length), x, h, r => near(r, data)), fill: "none", stroke: "--mix", sw: 2, opacity: 0.35 });
  const [near_, again] = [["--mix", "none"], ["--k", "5 4"]].map(([stroke, dash]) => pen.path({ fill: "none", stroke, sw: 2.5, dash }));
  const spots = range(length).map(j => [pen.circle({ cx: x(j), r: 4, fill: "--mix" }), pen.rect({ x: x(j) - 4, width: 8, height: 8, fill: "--k" })]);
  const rings = range(length).map(j => pen.circle({ cx: x(j), cy: h(1), r: 10, fill: "none", stroke: "--k", sw: 2.5 }));
  const stem = pen.line({ stroke: "--k", sw: 2, y1: h(1) + 10, y2: h(0.16) }), value = tag(pic, "--k");

  return () => {
    const all = firsts(p), first = all.at(-1), begin = app.glide("start", x(start())), M = app.shown.memory, keys = keysOf(p), twin = twinOf(p);
    const reach = all.map((from, n) => app.glide(`first${n}`, x(from))), at = x(app.shown.query);
    set(cone, { d: `M${reach.map((from, n) => `${from.toFixed(1)} ${y(layers - n)}`).join("L")}L${at} ${ground}L${at} ${y(layers)}Z` });
    set(hops, { d: `M${at} ${y(layers)}${reach.slice(1).map((from, n) => `L${from.toFixed(1)} ${y(layers - n - 1)}`).join("")}` });
    for (const [n, j, dot] of dots) {
      const [fill, stroke, sw] = LOOK[kind(j, all[layers - n], p)];
      set(dot, { fill, stroke, sw });
    }
    const wide = Math.max(0, begin - cell / 2 - Math.max(x(-0.5), left(M)) - 3), middle = begin - cell / 2 - wide / 2 - 3;
    set(segments, { x: begin - cell / 2 + 1, width: segment * cell - 3 });
    set(memory, { x: begin - cell / 2 - 3 - wide, width: wide, visibility: wide > 2 ? "visible" : "hidden" });
    set(names[0], { x: clamp(begin + (segment - 1) * cell / 2, 50, W - 36), y: top - inset - 5 });
    say(names[0], !narrow && segment * cell > 200 ? speak`segment: gradients flow` : speak`segment`);
    set(names[1], { x: Math.max(middle, narrow ? 30 : 60), y: y(layers - 1) - inset - 6, visibility: wide > 2 ? "visible" : "hidden" });
    say(names[1], wide > 170 ? speak`memory: kept, no gradient` : speak`memory‖of earlier segments`);
    set(token, { transform: `translate(${at} ${y(layers)})` });
    set(edge, { transform: `translate(${wide > 2 ? stop(M) : begin - cell / 2 - 3} ${ground - (layers - 1) * step / 2})` });
    say(facts[0], speak`token ${p.query} reaches ${count.place(p.query - first)} back`);
    say(facts[1], narrow ? speak`kept: ${layers} × ${p.memory} = ${count.state(layers * p.memory)}`
      : speak`kept: ${layers} × ${p.memory} = ${count.state(layers * p.memory)} (challenge: ${most} at most)`);
    const line = of => (keys.length > 1 ? `M${keys.map(j => `${x(j).toFixed(1)} ${h(of(j)).toFixed(1)}`).join("L")}` : "");
    const restarted = j => near(j % segment - p.query % segment, data);
    set(moving, { transform: `translate(${(at - x(0)).toFixed(1)} 0)` });
    set(near_, { d: line(j => near(j - p.query, data)) });
    set(again, { d: line(restarted) });
    const collide = j => keys.includes(j) && j !== p.query && j % segment === p.query % segment;
    spots.forEach(([own, other], j) => {
      const display = keys.includes(j) ? "inline" : "none";
      set(own, { cy: h(near(j - p.query, data)), display });
      set(other, { y: h(restarted(j)) - 4, display });
      set(rings[j], { display: collide(j) ? "inline" : "none" });
      const bold = j === p.query || collide(j) ? { fill: j === p.query ? "--q" : "--k", fw: 700 } : { fill: "--soft", fw: 400 };
      numbers[j].forEach((text, n) => set(text, n || j === p.query ? bold : { fill: "--soft", fw: 400 }));
    });
    set(stem, { x1: x(twin), x2: x(twin), visibility: twin === p.query ? "hidden" : "visible" });
    if (twin === p.query) value(-999, 0, "", W);
    else value(x(twin) - 16, h(0.16), narrow ? speak`collision` : speak`collision: ${twin} and ${p.query} both count as ${twin % segment}`, W);
  };
}

export const recurrence = {
  title: speak`Segment recurrence: a memory that travels with the text`, question: speak`How far back can one token reach?`,
  smooth: ["query", "memory"], menus: ["layers"],
  slide: ["segment", "layers"], plays: { walk: speak`the token walks` },
  shape: ({ params: p }) => [p.segment, p.layers].join(), scene, reached, build,
  play: (app, how, dt, now) => walk(app, "query", "query", false, 2.6, dt, now),
};
