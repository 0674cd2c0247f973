// Scaled RoPE: all pairs as dials. A longer text takes slow hands to angles that training never saw; a method slows them down.
import { TAU, arrow, canvas, chooser, clamp, commas, drag, general, grip, hover, html, named, pens,
  point, range, say, scale, set, slide, slider, speak, spiral, svg, walk, wedge, wrapped } from "./kit.js";

const DEG = 180 / Math.PI;
const MOST = 6.1; // log2 of how many times as slow: LongRoPE goes to 65

// ---- numbers: the same as Python's ----
/** θ′ of every pair, for a method, in a text `times` as long as those in training. */
export function thetas(method, times, { model, s }, { models, larger, ramps, longrope }) {
  const [d, base, L] = models[model], pairs = range(d / 2);
  const plain = (t, b = base) => b ** (-2 * t / d), ntk = factor => pairs.map(t => plain(t) * factor ** (-2 * t / (d - 2)));
  if (method === "PI") return pairs.map(t => plain(t) / s);
  if (method === "NTK-aware") return ntk(s);
  if (method === "dynamic NTK") return ntk(s * Math.max(1, times) - (s - 1));
  if (method === "LongRoPE" && model === longrope.model) return pairs.map(t => plain(t) / (times > 1 ? longrope.long : longrope.short)[t]);
  if (method === "larger base") return pairs.map(t => plain(t, base * larger));
  if (!ramps[method]) return pairs.map(t => plain(t));
  const [low, high] = ramps[method];
  return pairs.map(t => {
    const gamma = clamp((L * plain(t) / TAU - low) / (high - low), 0, 1);
    return (1 - gamma) * plain(t) / s + gamma * plain(t);
  });
}
/** Whether a pair reaches an angle that it did not reach in training; a whole turn has seen them all. */
export const unseen = (theta, now, L, length) => L * theta < TAU && length * now > L * theta * (1 + 1e-9);

/** SmolLM2's measured losses over the distance, if there are any for these settings. */
const curve = ({ model, method, s }, { listens, heard }) => (model === listens ? heard[method] ?? heard[`${method} ${s}`] : undefined);
/** The loss on a straight line between two measured distances; null beyond them. */
function lossAt(distance, [xs, ys]) {
  if (distance < xs[0] || distance > xs.at(-1)) return null;
  const n = Math.max(1, xs.findIndex(x => distance <= x));
  return ys[n - 1] + (distance - xs[n - 1]) / (xs[n] - xs[n - 1]) * (ys[n] - ys[n - 1]);
}

export function scene(p, data) {
  const { model, method, s, times, view, pair, loss } = p, [d, base, L] = data.models[model], length = times * L;
  const old = thetas("none", 1, p, data), now = thetas(method, times, p, data), pairs = range(d / 2);
  const title = { none: speak`no scaling`, "larger base": speak`base × ${data.larger}`,
    LongRoPE: model === data.longrope.model ? "LongRoPE, s = 32" : speak`LongRoPE (searched for ${data.longrope.model} only)` }[method] ?? `${named("method", method, data)}, s = ${s}`;
  const fresh = pairs.filter(t => unseen(old[t], now[t], L, length)).length, ratio = t => now[t] / old[t];
  const searched = method === "LongRoPE" && model === data.longrope.model;
  const factor = method === "YaRN" ? 0.1 * Math.log(s) + 1 : searched ? data.longrope.factor : 1;
  const measured = loss === "shown" ? curve(p, data) : undefined, at = measured && lossAt(length, measured);
  const said = loss !== "shown" ? "" : !measured ? speak` SmolLM2's loss is not measured here.`
    : at === null ? speak` SmolLM2's loss is measured up to ${commas(measured[0].at(-1))} positions.`
      : speak` SmolLM2 reads a text again: loss ${at.toFixed(2)} at this distance, ${data.without.toFixed(2)} without a first copy.`;
  const result = fresh ? speak`Up to ${commas(length)} tokens, ${fresh} of ${d / 2} hands reach angles that training never showed them.`
    : times > 1 ? speak`Up to ${commas(length)} tokens no hand reaches an angle that training never showed: the slowest turns ${(1 / ratio(d / 2 - 1)).toFixed(1)} times as slowly.`
      : speak`A text of the trained length: every angle has been seen.`;
  return {
    result,
    views: {
      wavelengths: [pairs, ...[old, now].map(all => all.map(theta => TAU / theta))],
      ...(measured ? { loss: [measured[0].map(x => x / 1000), measured[1]] } : { beside: view === "turns"
        ? [pairs, old.map(theta => L * theta / TAU), now.map(theta => length * theta / TAU)] : [pairs, pairs.map(ratio)] }),
    },
    description: speak`${named("model", model, data)} (d = ${d}, base ${commas(base)}, trained on ${commas(L)} positions), ${title}, read up to ${
      commas(length)}: ${old.filter(theta => L * theta / TAU < 1).length} of ${d / 2} pairs make less than a whole turn in training, and ${
      fresh} reach angles that they never saw; θ′/θ is ${general(ratio(0), 3)} for the fastest pair and ${
      general(ratio(d / 2 - 1), 3)} for the slowest${
      factor !== 1 ? speak`; cosines and sines are multiplied by ${factor.toFixed(3)}` : ""}.${said}`,
  };
}
export function reached(p, data) {
  const [d, , L] = data.models[p.model], length = p.times * L, quarter = d / 8;
  const old = thetas("none", 1, p, data), now = thetas(p.method, p.times, p, data);
  const kept = Math.min(...range(quarter).map(t => now[t] / old[t]));
  if (p.times < data.far || old.some((theta, t) => unseen(theta, now[t], L, length)) || kept < data.alike) return "";
  return speak`no new angle within ${commas(length)} positions, and θ′/θ ≥ ${kept.toFixed(2)} for the fastest ${quarter} of ${
    d / 2} pairs.`;
}

// ---- the picture: seen in training blue, now green, never seen orange ----
/** The angles from 0 to `a`: all of them after a full turn. */
const slice = (cx, cy, r, a) => (a < TAU - 0.01 ? wedge(cx, cy, r, 0, a)
  : `M${cx - r} ${cy}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`);
const turns = a => (a < 2 * TAU ? `${general(a * DEG, 3)}°` : speak`${commas(a / TAU)} turns`);

function build(app, stage) {
  const { params: p, data } = app, narrow = stage.clientWidth < 600, [, , L] = data.models[p.model];
  const first = methods(app, html(stage, "div"), narrow);
  const two = html(stage, "div", { class: `lv-two${narrow ? " lv-one" : ""}` });
  const left = html(two, "div"), right = html(two, "div");
  const parts = [first, dial(app, left, L), chart(app, right, narrow)];
  if (!app.small) parts.push(strip(app, html(stage, "div", { class: "lv-strip" })));
  if (p.loss === "shown") parts.push(ear(app, html(stage, "div")));
  const list = data.parameters.times.values.map(Math.log), old = thetas("none", 1, p, data);
  return () => { // between two steps the length grows evenly, as on a slide rule
    const i = Math.floor(app.shown.times), rest = app.shown.times - i;
    const times = Math.exp(list[i] + (rest && rest * (list[i + 1] - list[i])));
    const exact = Math.abs(times - p.times) < 1e-9 ? p.times : times;
    const goal = thetas(p.method, exact, { ...p, s: p.s }, data);
    const now = goal.map((theta, t) => Math.exp(app.glide(`${p.model} ${t}`, Math.log(theta), 2e-3)));
    parts.forEach(paint => paint({ times: exact, length: exact * L, now, old, L, fresh: t => unseen(old[t], now[t], L, exact * L * (1 - 1e-6)) }));
  };
}
/** Where a length stands in the list of lengths, a real number. */
function placed(times, list) {
  const i = clamp(list.findIndex(v => v > times) - 1, 0, list.length - 2);
  return times >= list.at(-1) ? list.length - 1 : clamp(i + Math.log(times / list[i]) / Math.log(list[i + 1] / list[i]), 0, i + 1);
}

/** All methods side by side: how many times slower each pair turns, and where that is too little. */
function methods(app, parent, narrow) {
  const { params: p, data } = app, names = data.parameters.method.values, W = app.width(parent);
  const slim = app.small, each = W < 480 ? 3 : slim || W < 760 ? 4 : names.length, wide = W / each, tall = slim ? 38 : narrow ? 76 : 84, H = tall * Math.ceil(names.length / each);
  const [pic] = canvas(parent, W, H, speak`Methods side by side`, { style: `margin-bottom:${slim ? 10 : 20}px` });
  set(pic, { role: "radiogroup" });
  const [d, , L] = data.models[p.model], n = d / 2, old = thetas("none", 1, p, data), slow = old.findIndex(v => L * v < TAU);
  const boxes = names.map((name, i) => {
    const g = svg(pic, "g", { class: "lv-clock", transform: `translate(${i % each * wide} ${tall * Math.floor(i / each)})` });
    const pen = pens(g), x = scale(0, n - 1, slim ? wide - 62 : 12, wide - 18), y = scale(0, MOST, tall - 12, slim ? 5 : 42);
    const box = pen.rect({ x: 3, y: 2, width: wide - 7, height: tall - 6, rx: 8, class: "lv-hit" });
    const need = slow < 0 ? null : pen.rect({ x: x(slow - 0.5), width: x(n - 0.5) - x(slow - 0.5), fill: "--k2", opacity: 0.55 });
    const path = pen.path({ fill: "none", sw: 2.4, cap: 1 });
    const title = pen.text({ x: 11, y: 14, vc: 1, fill: "--ink", fs: 13 }, data.parameters.method.texts[i]);
    const count = pen.text({ x: 11, y: slim ? 25 : 30, vc: 1, fw: 700, fs: slim ? 13 : 12.5 });
    return { name, box, need, path, title, count, x, y };
  });
  chooser(app, boxes.map(({ box }) => box.parentNode), "method", i => speak`${data.parameters.method.texts[i]}: pairs with angles never seen: ${boxes[i].count.textContent}`);
  return ({ times, length }) => boxes.forEach(({ name, box, need, path, title, count, x, y }) => {
    const now = thetas(name, times, p, data), own = name === p.method;
    const bad = old.filter((theta, t) => unseen(theta, now[t], L, length)).length, up = v => y(clamp(Math.log2(v), 0, MOST));
    set(box, own ? { stroke: "--mix", sw: 2.5, fill: "--face" } : { stroke: "--line", sw: 1, fill: "#0000" });
    set(path, { d: "M" + now.map((theta, t) => `${x(t).toFixed(1)} ${up(old[t] / theta).toFixed(1)}`).join("L"), stroke: own ? "--mix" : "--soft" });
    if (need) set(need, { y: up(times), height: y(0) - up(times) });
    set(title, { fw: own ? 700 : 400, y: slim ? own ? 11 : 18 : 14 });
    set(count, { fill: bad ? "--k" : "--mix", visibility: slim && !own ? "hidden" : "visible" }); // on a slide, who asks is told
    say(count, bad ? speak`${bad} new` : speak`✓ none new`);
  });
}

/** The chosen pair: the angles that training saw, and where it stands at the end of the text. */
function dial(app, parent) {
  const { params: p, data } = app, W = Math.min(app.width(parent), app.small ? 176 : 226), c = W / 2, R = c - 18, cy = c + 20;
  const [pic, pen] = canvas(parent, W, W + 20, speak`One pair: the angles seen in training, and the angle at the end of the text`,
    { style: `max-width:${app.grow * W}px;margin:auto` });
  const title = pen.text({ x: c, y: 10, mid: 1, fill: "--ink", fw: 700 });
  pen.circle({ cx: c, cy, r: R, fill: "--face", stroke: "--line", sw: 1.5 });
  const seen = pen.path({ fill: "--q2" }), rim = pen.path({ fill: "none", stroke: "--q", sw: 3 });
  const extra = pen.path({ fill: "--k2", opacity: 0.8 }), far = pen.path({ fill: "none", stroke: "--k", sw: 3, dash: "2 5", cap: 1 });
  pen.path({ d: `M${c - R} ${cy}H${c + R}M${c} ${cy - R}V${cy + R}`, stroke: "--line" });
  const before = [pen.path({ stroke: "--mix", sw: 3, opacity: 0.4 }), pen.path({ fill: "--mix", opacity: 0.4 })];
  const hand = pen.g({ class: "lv-hand" });
  const after = [svg(hand, "path", { stroke: "--mix", sw: 5, cap: 1 }), svg(hand, "path", { fill: "--mix" })];
  const spots = [svg(hand, "circle", { r: 16, class: "lv-ring" }), svg(hand, "circle", { r: 24, fill: "#0000" })];
  const words = [["--q", speak`seen`], ["--k", speak`never seen`], ["--mix", "θ′"], ["--mix", "θ"]].map(([fill, text]) =>
    pen.text({ halo: 1, mid: 1, fill, fw: 700, fs: 14, still: 1 }, text));
  pen.circle({ cx: c, cy, r: 4.5, fill: "--ink" });
  let last = 0, length = 0, theta = 1;
  const look = to => Math.atan2(cy - to.y, to.x - c), times = data.parameters.times.values, [, , L] = data.models[p.model];
  drag(app, hand, "times", {
    down: to => { last = look(to); length = hand.length; },
    move(to) { // turns are counted
      const now = look(to);
      length = clamp(length + wrapped(now - last) / theta, L, L * times.at(-1));
      last = now;
      app.hold("times", placed(length / L, times));
    },
  });
  const sums = html(app.small ? null : parent, "div", { class: "lv-sums" });
  const cells = ["q", "mix", "k"].flatMap(colour => ["b", "span", "span"].map(tagName =>
    html(sums, tagName, { style: `color:var(--${colour})` })));
  const on = (r, a) => [c + r * Math.cos(a), cy - r * Math.sin(a)];
  const put = (node, r, a, show) => {
    const [x, y] = on(r, a);
    set(node, { x, y, visibility: show ? "visible" : "hidden" });
  };
  return ({ length: end, now, old, L: trained, fresh }) => {
    const t = Math.min(p.pair, now.length - 1), a = trained * old[t], b = end * now[t], plain = end * old[t], whole = a >= TAU, bad = fresh(t);
    hand.length = end;
    say(title, speak`Pair ${t} at the end of the text`);
    theta = now[t];
    set(seen, { d: slice(c, cy, R, a), opacity: whole ? 0.6 : 1 });
    set(rim, { d: spiral(c, cy, R, R, 0, Math.min(a, TAU)) });
    set(extra, { d: bad ? wedge(c, cy, R, a, Math.min(b, TAU)) : "" });
    set(far, { d: bad ? spiral(c, cy, R, R - 12 * Math.max(0, b / TAU - 1), a, Math.min(b, a + 8 * TAU)) : "" });
    for (const [pieces, angle, r, size] of [[before, plain, R * 0.72, 12], [after, b, R * 0.95, 16]]) {
      const drawn = arrow(c, cy, ...on(r, angle), size);
      set(pieces[0], { d: drawn.line });
      set(pieces[1], { d: drawn.head });
    }
    const [hx, hy] = on(R * 0.95, b);
    spots.forEach(spot => set(spot, { cx: hx, cy: hy }));
    const free = [0.5, 0.2, 0.8].map(part => part * Math.min(a, TAU)).sort((u, v) => Math.abs(wrapped(v - b)) - Math.abs(wrapped(u - b)));
    put(words[0], R * 0.62, free[0], a > 0.5);
    put(words[1], R * 0.5, (a + Math.min(b, TAU)) / 2, bad && Math.min(b, TAU) - a > 0.9);
    put(words[2], R + 11, b, true);
    put(words[3], R * 0.72 + 11, plain, Math.abs(wrapped(plain - b)) > 0.3);
    set(words[3], { opacity: 0.75 });
    [speak`trained`, `L·θ = ${commas(trained)} × ${general(old[t] * DEG, 3)}°`, `= ${turns(a)}`,
      speak`now`, `L′·θ′ = ${commas(Math.round(end))} × ${general(now[t] * DEG, 3)}°`, `= ${turns(b)}`,
      bad ? speak`new` : "", bad ? speak`from ${turns(a)} on: never seen in training` : "", ""].forEach((text, i) => say(cells[i], text));
    set(cells[7], { style: "color:var(--k);grid-column:2 / span 2" });
    set(sums, { style: "min-height:66px" });
  };
}

/** How many times slower each pair turns; slow pairs must clear the length of the text. Both can be dragged. */
function chart(app, parent, narrow) {
  const { params: p, data } = app, W = app.width(parent), H = app.small ? 196 : 300, [d, , L] = data.models[p.model], n = d / 2;
  const top = 30, bottom = H - 36, left = 62, right = W - 76;
  const [pic, pen] = canvas(parent, W, H, speak`How many times as slow each pair turns now`);
  const x = scale(-0.5, n - 0.5, left + 20, right - 6), y = scale(0, MOST, bottom, top), up = v => y(clamp(Math.log2(v), 0, MOST));
  const old = thetas("none", 1, p, data), slow = old.findIndex(v => L * v < TAU), from = x(slow < 0 ? n : slow - 0.5);
  const steps = data.parameters.s.values, ticks = p.method === "LongRoPE" ? [...steps, 64] : steps;
  pen.text({ x: left - 22, y: 10, vc: 1, fill: "--ink", fw: 700 }, narrow ? speak`Times as slow as in training` : speak`Times as slow as in training, pair by pair`);
  for (const v of ticks) {
    pen.line({ x1: left, x2: right, y1: up(v), y2: up(v), stroke: "--line", sw: v > 1 ? 1 : 2 });
  }
  for (const v of range(n).filter(t => t === n - 1 || t % (n / (narrow ? 4 : 8)) === 0 && x(n - 1) - x(t) > 26))
    pen.text({ x: x(v), y: bottom + 16, ta: "middle" }, v);
  pen.text({ x: (left + right) / 2, y: bottom + 32, ta: "middle" }, speak`pair t: fast on the left, slow on the right`);
  const quarter = x(d / 8 - 0.5);
  const leave = [pen.path({ d: `M${x(-0.5)} ${top + 6}v-6H${quarter}v6`, fill: "none", sw: 2.5 }),
    pen.text({ ...app.small ? { x: quarter + 6, y: top + 5, fs: 13 } : { x: x(-0.5) + 5, y: top + 16, fs: 12.5 }, halo: 1 }, narrow ? speak`keep` : speak`leave these alone`)];
  const zone = pen.rect({ x: from, width: right - from, fill: "--k2", opacity: 0.5 });
  const edge = pen.line({ x1: from, x2: right + 22, stroke: "--k", sw: 2.5, dash: "6 5" });
  const mark = pen.line({ y1: top, y2: bottom, stroke: "--mix", opacity: 0.5, sw: 2 });
  const said = pen.text({ x: (from + right) / 2, mid: 1, halo: 1, fill: "--k", fw: 700, fs: 13.5, still: 1 }, speak`too fast: new angles`);
  const sLine = pen.line({ x1: left, x2: right, stroke: "--mix", dash: "2 5", sw: 1.5 });
  const path = pen.path({ fill: "none", stroke: "--mix", sw: 2.5 });
  const dots = range(n).map(t => pen.circle({ cx: x(t) }));
  const area = pen.rect({ x: x(-0.5), y: top, width: x(n - 0.5) - x(-0.5), height: bottom - top, fill: "#0000",
    style: "cursor:pointer;touch-action:pan-y" });
  const at = to => clamp(Math.round(x.back(to.x)), 0, n - 1);
  area.addEventListener("click", event => { app.pause(); app.set({ pair: at(point(event, pic)) }); });
  let shownNow = old;
  hover(app, area, to => {
    const t = at(to);
    return speak`Pair ${t}: a turn in ${commas(TAU / old[t], 1)} positions, now in ${commas(TAU / shownNow[t], 1)}; ${
      general(old[t] / shownNow[t], 3)} times as slow`;
  });
  const takes = !["none", "larger base", "LongRoPE"].includes(p.method);
  const grips = {};
  for (const [name, colour, text, label, px] of [["s", "mix", "s", speak`factor s`, left], ["times", "k", "L′", speak`length of the text`, right + 22]]) {
    const values = data.parameters[name].values;
    pen.line({ x1: px, x2: px, y1: up(1), y2: up(32), stroke: `--${colour}`, opacity: 0.35, sw: 4, cap: 1 });
    grips[name] = grip(app, pic, colour, name, text, label, () => (name === "s" ? p.s : speak`${p.times} L, ${commas(p.times * L)} positions`));
    slide(app, grips[name], name, to => placed(2 ** y.back(to.y), values));
  }
  if (!takes) set(grips.s, { opacity: 0.35 });
  const sTexts = ticks.map(v => pen.text({ x: left - 22, y: up(v), vc: 1, ta: "end" }, v));
  const lText = [pen.text({ x: right + 42, vc: 1, fill: "--k", fw: 700, fs: 15 }), pen.text({ x: W, ta: "end", fill: "--k", fs: app.small ? 13 : 12 })];
  return ({ times, length, now, fresh }) => {
    shownNow = now;
    const s = p.s, ys = now.map((theta, t) => up(old[t] / theta)), line = app.glide("s line", up(s), 0.3), goal = up(times);
    set(path, { d: "M" + ys.map((v, t) => `${x(t).toFixed(1)} ${v.toFixed(1)}`).join("L") });
    dots.forEach((dot, t) => {
      const bad = fresh(t), own = t === p.pair, r = (app.small ? 2.7 : n > 40 ? 3 : 4) + (own ? 3 : 0);
      set(dot, { cy: ys[t], r, fill: bad ? "--paper" : "--mix", stroke: bad ? "--k" : "--paper", sw: bad ? app.small ? 1.7 : 2.5 : 1 });
    });
    const kept = now.every((theta, t) => t >= d / 8 || theta >= data.alike * old[t]), ink = kept ? "--q" : "--k";
    set(leave[0], { stroke: ink });
    set(leave[1], { fill: ink });
    set(mark, { x1: x(p.pair), x2: x(p.pair) });
    set(zone, { y: goal, height: bottom - goal });
    set(edge, { y1: goal, y2: goal });
    set(said, { y: (goal + bottom) / 2, visibility: bottom - goal > 40 && right - from > 140 && now.some((_, t) => fresh(t)) ? "visible" : "hidden" });
    set(sLine, { y1: line, y2: line, visibility: takes ? "visible" : "hidden" });
    set(grips.s, { transform: `translate(${left} ${up(2 ** interpolated(app.shown.s, steps))})` });
    set(grips.times, { transform: `translate(${right + 22} ${goal})` });
    sTexts.forEach((text, i) => set(text, takes && ticks[i] === s ? { fill: "--mix", fw: 700, fs: 15 } : { fill: "--soft", fw: 400, fs: 13 }));
    set(lText[0], { y: goal });
    set(lText[1], { y: goal + (goal > bottom - 30 ? -18 : 26) });
    say(lText[0], `${general(times, 3)} L`);
    say(lText[1], commas(Math.round(length)));
  };
}
function interpolated(i, values) {
  const a = Math.floor(i), b = Math.min(a + 1, values.length - 1);
  return Math.log2(values[a]) + (i - a) * Math.log2(values[b] / values[a]);
}

/** What SmolLM2 makes of it: the measured loss on a text that it read that far back. */
function ear(app, parent) {
  const { params: p, data } = app, W = app.width(parent), measured = curve(p, data), [, , L] = data.models[p.model];
  const H = measured ? 146 : 22, left = 40, right = W - 14, top = 40, bottom = H - 30;
  const [pic, pen] = canvas(parent, W, H, speak`SmolLM2's loss on a text that it reads again, over the distance of the first copy`);
  const few = W < 560, head = measured ? few ? speak`SmolLM2's loss when it reads again`
    : speak`SmolLM2's loss when it reads again, over the distance of the first copy`
    : few ? speak`SmolLM2's loss: not measured` : speak`SmolLM2's loss: not measured with these settings`;
  pen.text({ x: 0, y: 10, vc: 1, fw: 700, fs: 14, fill: "--ink" }, head);
  if (!measured) return () => {};
  const [xs, ys] = measured, x = scale(0, xs.at(-1) / L, left, right), y = scale(0, 6, bottom, top);
  for (const v of [0, 2, 4, 6]) {
    pen.line({ x1: left, x2: right, y1: y(v), y2: y(v), stroke: "--line" });
    pen.text({ x: left - 8, y: y(v), vc: 1, ta: "end", fs: app.small ? 13 : 12 }, v);
  }
  for (const v of range(8)) pen.text({ x: x(v), y: bottom + 14, ta: "middle", fs: app.small ? 13 : 12 }, v ? `${v} L` : 0);
  pen.line({ x1: left, x2: right, y1: y(data.without), y2: y(data.without), stroke: "--soft", dash: "2 5", sw: 2 });
  pen.text({ x: right, y: y(data.without) - 8, ta: "end", fs: 12.5, halo: 1 }, few ? speak`no copy` : speak`without a first copy`);
  pen.path({ d: "M" + xs.map((v, i) => `${x(v / L).toFixed(1)} ${y(Math.min(6, ys[i])).toFixed(1)}`).join("L"), fill: "none", stroke: "--mix", sw: 2.5 });
  xs.forEach((v, i) => pen.circle({ cx: x(v / L), cy: y(Math.min(6, ys[i])), r: 3, fill: "--mix" }));
  const mark = pen.line({ y1: top - 8, y2: bottom, stroke: "--k", sw: 2 }), dot = pen.circle({ r: 6, fill: "--k" });
  const said = pen.text({ y: top - 6, fs: 13.5, fw: 700, halo: 1, fill: "--k" });
  return ({ length }) => {
    const at = lossAt(length, measured), px = x(Math.min(length, xs.at(-1)) / L), late = px > W / 2;
    set(mark, { x1: px, x2: px });
    set(dot, { cx: px, cy: y(Math.min(6, at ?? 0)), visibility: at === null ? "hidden" : "visible" });
    set(said, { x: px + (late ? -8 : 8), ta: late ? "end" : "start" });
    say(said, at === null ? speak`not measured so far out` : at.toFixed(1));
  };
}

/** All pairs as dials: each a little to the right of the one before, or, where that is narrow, line by line. */
function strip(app, parent) {
  const { params: p, data } = app, W = app.width(parent), n = data.models[p.model][0] / 2, cell = W / n;
  const narrow = W < 500, few = W < 760, each = n > 32 ? 12 : 8, rows = narrow ? Math.ceil(n / each) : Math.ceil(40 / cell);
  const R = Math.min(20, narrow ? W / each / 2 - 2.5 : cell * rows * 0.46), tall = 2 * R + 4, step = tall * (narrow ? 1 : rows > 2 ? 0.92 : 0.8);
  const head = narrow ? 44 : 22, H = head + tall + step * (rows - 1) + 2;
  const place = t => (narrow ? [W / each * (t % each + 0.5), Math.floor(t / each)] : [R + 3 + t / (n - 1) * (W - 2 * R - 6), t % rows]);
  const [pic, pen] = canvas(parent, W, H, speak`All pairs: the angles seen in training, and the hand at the end of the text`);
  set(pic, { role: "radiogroup" });
  pen.text({ x: 0, y: 10, vc: 1, fw: 700, fill: "--ink" }, few ? speak`All ${n} pairs, fast to slow` : speak`All ${n} pairs at the end of the text, fast to slow`);
  const said = pen.text({ x: narrow ? 0 : W, y: narrow ? 30 : 10, vc: 1, ta: narrow ? "start" : "end", fw: 700 });
  const dials = range(n).map(t => {
    const g = svg(pic, "g", { class: "lv-clock" }), own = pens(g), [cx, row] = place(t), cy = head + R + 2 + row * step;
    const hit = own.circle({ cx, cy, r: R + 1.5, class: "lv-hit" });
    own.circle({ cx, cy, r: R, fill: "--paper", stroke: "--line" });
    const seen = own.path({ fill: "--q2" }), extra = own.path({ fill: "--k" }), hand = own.line({ x1: cx, y1: cy, cap: 1, sw: 2 });
    return { g, cx, cy, hit, seen, extra, hand };
  });
  chooser(app, dials.map(each => each.g), "pair", t => speak`pair ${t}`);
  return ({ length, now, old, L, fresh }) => {
    const many = now.filter((_, t) => fresh(t)).length;
    set(said, { fill: many ? "--k" : "--mix" });
    say(said, few ? many ? speak`${many} of ${n} pairs reach angles never seen` : speak`No pair reaches an angle never seen`
      : many ? speak`${many} of ${n} pairs reach angles never seen in training` : speak`No pair reaches an angle never seen in training`);
    dials.forEach(({ cx, cy, hit, seen, extra, hand }, t) => {
      const a = L * old[t], b = length * now[t], bad = fresh(t), own = t === p.pair;
      set(seen, { d: slice(cx, cy, R - 1, a), opacity: a < TAU ? 1 : 0.45 });
      set(extra, { d: bad ? wedge(cx, cy, R - 1, a, Math.min(b, TAU)) : "" });
      set(hand, { x2: cx + R * 0.9 * Math.cos(b), y2: cy - R * 0.9 * Math.sin(b), stroke: bad ? "--ink" : "--mix", opacity: a < TAU ? 1 : 0.4 });
      set(hit, { style: own ? "stroke:var(--mix);stroke-width:4px" : "" });
    });
  };
}

export const scaling = {
  title: speak`Scaled RoPE: dials in a longer text`, question: speak`In a longer text, which angles are new?`,
  smooth: ["times", "s"], drawn: ["method", "view", "pair"],
  sizes: { pair: (p, { models }) => models[p.model][0] / 2 },
  plays: { grow: speak`the text grows` },
  shape: ({ params: p }) => [p.model, p.method, p.loss, p.loss === "shown" && p.s].join(),
  scene, reached, build,
  play: (app, how, dt, now) => walk(app, "times", "times", false, 1.5, dt, now),
};
