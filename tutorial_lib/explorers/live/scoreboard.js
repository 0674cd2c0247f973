// The scoreboard: a swarm of all encodings in each column, and a list of all names; two are marked, and dragged.
import { canvas, chooser, grip, hover, html, named, pens, point, range, say, scale, set, slide, speak,
  svg } from "./kit.js";

// ---- what is left, and in which order: the same as Python's ----
const place = (data, column) => Object.keys(data.columns).indexOf(column);
/** The columns that are drawn: all, or few and the one that the reader sorts by. */
const shown = ({ which, sort }, { few, columns }) => (which === "three" ? [...new Set([...few, sort])] : Object.keys(columns));

/** Each row's place in a column, from 0 (the worst) to 1 (the best); null where nothing was measured. */
export function ranks(data, column) {
  const c = place(data, column), sign = data.large.includes(column) ? 1 : -1;
  const all = data.board.map(row => row.values[c]), known = all.filter(v => v !== null);
  const below = all.map(v => (v === null ? null : known.filter(other => sign * other < sign * v).length));
  const top = Math.max(...below) || 1;
  return below.map(count => (count === null ? null : count / top));
}
/** Rows of the board that the filters leave, the best in the column first; those without a number last. */
export function left({ which, sort, door, shift, longer }, data) {
  const [shifts, tails] = [place(data, "shift"), place(data, "tail")], score = ranks(data, sort);
  const fits = ({ name, doors, values }) => (which !== "three" || data.three.includes(name))
    && (door === "any" || doors.includes(door))
    && (shift === "any" || values[shifts] !== null && (values[shifts] === 0) === (shift === "relative"))
    && (longer === "any" || values[tails] !== null) && (longer !== "steady" || values[tails] < data.steady);
  return range(data.board.length).filter(i => fits(data.board[i])).sort((a, b) => (score[b] ?? -1) - (score[a] ?? -1));
}
export function scene(p, data) {
  const { columns, board } = data, order = left(p, data), c = place(data, p.sort), title = columns[p.sort];
  const all = Object.keys(columns).map(column => ranks(data, column)), known = order.filter(i => board[i].values[c] !== null);
  const ends = [known[0], known.at(-1)].map(i => i !== undefined && `${board[i].name} (${board[i].texts[c]})`);
  const doors = i => board[i].doors.map(door => named("door", door, data)).join(speak`, `) || speak`no door`;
  const marked = i => speak`${board[i].name} (${doors(i)}), ${title} ${board[i].texts[c]}`;
  const many = order.length, by = !known.length ? speak`none of them has a ${title}`
    : speak`by ${title} from ${ends[0]} to ${ends[1]}`;
  return {
    views: { board: order.length ? order.map(i => all.map(score => score[i])) : [all.map(() => 0)] },
    description: many ? speak`${many} of ${board.length} encodings are left, ${by}; marked is ${marked(order[p.row])}; beside it ${marked(order[p.other])}.`
      : speak`${many} of ${board.length} encodings are left, ${by}; loosen a filter.`,
  };
}
export function reached(p, data) {
  const order = left(p, data), [a, b] = [order[p.row], order[p.other]], loss = place(data, "loss");
  if (a === undefined || [a, b].some(i => data.board[i].values[loss] === null)) return "";
  const both = shown(p, data).map(column => ranks(data, column)).filter(score => score[a] !== null && score[b] !== null);
  const better = both.filter(score => score[a] > score[b]).length;
  if (!better || both.some(score => score[a] < score[b])) return "";
  return speak`${data.board[a].name} is better than ${data.board[b].name} in ${better} of ${both.length} columns, and worse in none.`;
}

// ---- the picture: the marked row blue, the other orange ----
const TWO = [["k", "other", "b"], ["q", "row", "a"]];

function build(app, stage) {
  const { params: p, data } = app, narrow = stage.clientWidth < 860, order = left(p, data);
  if (!app.keeps) { // what is marked stays marked when the order changes
    const plain = app.set;
    app.keeps = true;
    app.set = (some, quiet) => {
      if (["which", "sort", "door", "shift", "longer"].some(name => name in some) && !("row" in some)) {
        const [old, next] = [left(p, data), left({ ...p, ...some }, data)];
        for (const [, name] of TWO) some = { ...some, [name]: Math.max(0, next.indexOf(old[p[name]])) };
      }
      plain(some, quiet);
    };
  }
  const scroll = html(stage, "div", { class: "lv-board", style: app.small ? "max-height:none" : "" });
  const table = narrow ? null : html(scroll, "table"), head = narrow ? null : html(table, "thead");
  const few = p.which === "three" && order.length > 1;
  const W = app.width(scroll), name = narrow ? 0 : few && app.small ? 100 : 176;
  const keys = shown(p, data), wide = (W - name) / keys.length;
  if (!narrow) {
    const cols = html(table, "colgroup");
    for (const part of [name, ...keys.map(() => wide)]) html(cols, "col", { style: `width:${100 * part / W}%` });
    const row = html(head, "tr");
    html(row, "td");
    for (const key of keys) {
      const cell = html(row, "th", { scope: "col", "aria-sort": key === p.sort ? "descending" : "none" });
      const button = html(cell, "button", { type: "button", "data-key": `sort ${key}`, title: speak`sort by this`,
        style: few ? `padding-left:${(0.28 * wide - 8).toFixed(0)}px;text-align:left;white-space:nowrap` : "" }, data.columns[key]);
      button.addEventListener("click", () => app.set({ sort: key }));
    }
  }
  const swarm = (few ? duel : field)(app, narrow ? html(scroll, "div") : html(html(head, "tr"), "td", { colspan: keys.length + 1 }), order, { W, name, wide, keys, narrow });
  const columns = Math.max(1, Math.floor(W / 262)), down = Math.max(1, Math.ceil(order.length / columns));
  const grid = `grid-template:repeat(${down}, auto) / repeat(${columns}, minmax(0, 1fr))`;
  const rows = app.small || few ? () => {} : list(app, html(html(scroll, "table", { class: "lv-names" }), "tbody", { style: grid }), order, keys);
  const said = html(app.small ? null : stage, "p", { class: "lv-versus" });
  const [mine, even, theirs] = ["q", "soft", "k"].map(colour => html(said, "b", { style: `color:var(--${colour})` }));
  const scores = keys.map(key => ranks(data, key)), called = i => (few && data.short[data.board[i].name]) || data.board[i].name;
  return () => {
    swarm();
    rows();
    const [a, b] = [order[p.row], order[p.other]], both = scores.filter(s => a !== undefined && s[a] !== null && s[b] !== null);
    const wins = (x, y) => both.filter(s => s[x] > s[y]).length;
    say(mine, a === undefined ? speak`No encoding is left: loosen a filter.` : speak`${called(a)} is better in ${wins(a, b)}`);
    say(even, a === undefined ? "" : speak`equal in ${both.length - wins(a, b) - wins(b, a)} of ${both.length} columns`);
    say(theirs, a === undefined ? "" : speak`${called(b)} is better in ${wins(b, a)}`);
  };
}

/** Few rows: a place in each column by their numbers, the best at the top, with names and numbers beside them. */
function duel(app, parent, order, { W, name, wide, keys, narrow }) {
  const { params: p, data } = app, fs = app.small ? 17 : 13, over = narrow ? 2.6 * fs : 1.5 * fs, high = app.small ? 300 : narrow ? 130 : 170;
  const across = W < 560 ? 2 : keys.length, block = over + high + 2 * fs; // on a phone two stand side by side
  if (narrow) wide = W / across;
  const [pic, pen] = canvas(parent, W, block * Math.ceil(keys.length / across) + 20 * narrow, speak`The encodings in each column, the best at the top`);
  const x = keys.map((_, c) => name + (c % across + (narrow ? 0.17 : 0.28)) * wide), sorted = keys.indexOf(p.sort), heads = [];
  for (const [y, words] of narrow ? [[block * Math.ceil(keys.length / across) + 6, speak`↑ better`]] : [[over, speak`↑ better`], [over + high, speak`worse`]]) {
    pen.text({ ...(app.small ? { x: name - 24, ta: "end" } : { x: 0 }), y, vc: 1, fs, fill: "--soft" }, words);
  }
  const spots = keys.map((key, c) => {
    const row = Math.floor(c / across) * block, top = row + over, bottom = top + high;
    if (narrow) {
      pen.text({ x: x[c] - fs / 2, y: row + fs, vc: 1, fs, fill: c === sorted ? "--ink" : "--soft", fw: c === sorted ? 700 : 400 }, data.columns[key]);
      heads.push(svg(pen.g({ class: "lv-clock" }), "rect", { x: x[c] - fs, y: row, width: wide - fs, height: 2 * fs, rx: 8, class: "lv-hit" }).parentNode);
    }
    const col = place(data, key), values = order.map(i => data.board[i].values[col]), known = values.filter(v => v !== null);
    const ends = [Math.min(...known), Math.max(...known)], low = data.large.includes(key);
    const y = ends[0] === ends[1] ? () => (top + bottom) / 2 : scale(ends[low ? 0 : 1], ends[low ? 1 : 0], bottom, top);
    const at = values.map(v => (v === null ? bottom + 1.2 * fs : y(v))), gap = 1.35 * fs;
    pen.line({ x1: x[c], x2: x[c], y1: top, y2: bottom, stroke: "--line", sw: 2 });
    const down = range(order.length).sort((a, b) => at[a] - at[b]), words = [...at]; // names keep clear of each other
    down.forEach((n, k) => { if (k) words[n] = Math.max(words[n], words[down[k - 1]] + gap); });
    [...down].reverse().reduce((below, n) => (words[n] = Math.min(words[n], below)) - gap, bottom + fs);
    return { at, words, col };
  });
  const gaps = keys.map(() => pen.path({ fill: "none", sw: 6, cap: 1, opacity: 0.5, still: 1 }));
  const rows = order.map((i, n) => spots.map(({ at, words, col }, c) => {
    const dot = pen.circle({ cx: x[c], cy: at[n], r: fs / 2.4, rim: 1, style: "cursor:pointer" });
    dot.addEventListener("click", () => app.put({ row: n }));
    const text = `${data.short[data.board[i].name] ?? data.board[i].name}\u2002${data.board[i].texts[col].replace("-", "−")}`;
    return [dot, pen.text({ x: x[c] + 1.6 * fs, y: words[n], vc: 1, fs, halo: 1, still: 1, translate: "no" }, text)];
  }));
  if (narrow) chooser(app, heads, "sort", c => speak`sort by ${data.columns[keys[c]]}`);
  const nearest = to => spots[sorted].at.reduce((best, y, n, all) => (Math.abs(y - to.y) < Math.abs(all[best] - to.y) ? n : best), 0);
  const grips = TWO.map(([colour, at, letter]) => {
    const handle = grip(app, pic, colour, at, app.small ? "" : letter, app.table[at].label, () => data.board[order[app.params[at]]].name);
    slide(app, handle, at, nearest);
    return handle;
  });
  return () => {
    const two = TWO.map(([, at]) => app.params[at]);
    rows.forEach((row, n) => row.forEach(([dot, words]) => {
      const mark = n === two[1] ? "q" : n === two[0] ? "k" : "";
      set(dot, { fill: `var(--${mark || "soft"})` });
      set(words, { fill: `var(--${mark || "soft"})`, "font-weight": mark ? 700 : 400 });
    }));
    spots.forEach(({ at, col }, c) => {
      const [b, a] = two.map(n => at[n]), known = two.every(n => data.board[order[n]].values[col] !== null);
      set(gaps[c], { d: known && a !== b ? `M${x[c]} ${a}L${x[c]} ${b}` : "M0 0", stroke: `var(--${a < b ? "q" : "k"})` });
    });
    grips.forEach((handle, n) => set(handle, { transform:
      `translate(${x[sorted] - (n && two[0] === two[1] ? 14 : 0)} ${app.glide(TWO[n][1], spots[sorted].at[two[n]], 0.4)})` }));
  };
}

/** All encodings above each column, the best at the top; what was not measured lies below, as rings. */
function field(app, parent, order, { W, name, wide, keys, narrow }) {
  const { params: p, data } = app, { board } = data, heads = narrow ? 132 : 4, high = app.small ? 176 : narrow ? 168 : 112, top = heads + (narrow ? 18 : 32);
  const bottom = top + high, H = bottom + (narrow || app.small ? 80 : 102), r = narrow ? 2.6 : 4, step = 2 * r + 1, most = Math.max(1, Math.floor((wide - 10) / step));
  const [pic, pen] = canvas(parent, W, H, speak`All encodings in each column, the best at the top`);
  const text = (i, c) => board[i].texts[place(data, keys[c])].replace("-", "−");
  const x = keys.map((_, c) => name + (c + 0.5) * wide), y = scale(0, 1, bottom, top), inside = new Set(order);
  const sorted = keys.indexOf(p.sort), sorts = [];
  pen.rect({ x: x[sorted] - wide / 2 + 2, y: narrow ? 0 : 2, width: wide - 4, height: H - (narrow ? 24 : 4), rx: 8, fill: "--face", stroke: "--mix", sw: 2 });
  if (!narrow) {
    const at = app.small ? { x: name - 10, ta: "end" } : { x: 0 };
    pen.text({ ...at, y: top + 4, fill: "--ink", fw: 700 }, speak`↑ better`);
    pen.text({ ...at, y: (top + bottom) / 2 }, speak`in ranks`); // not to the scale of the numbers at its ends
    pen.text({ ...at, y: bottom + 4 }, speak`worse`);
    if (!app.small) pen.text({ ...at, y: bottom + 36, vc: 1 }, speak`not measured`);
  } else pen.text({ x: 0, y: H - 4, fs: 12 }, speak`↑ better. Rings were not measured.`);
  const spots = keys.map((key, c) => {
    const score = ranks(data, key), taken = [], found = Array(board.length);
    const best = board.findIndex((_, i) => score[i] === 1), worst = board.findIndex((_, i) => score[i] === 0);
    pen.line({ x1: x[c], x2: x[c], y1: top, y2: bottom, stroke: "--line", sw: 1.5 });
    if (!narrow) {
      pen.text({ x: x[c], y: top - 21, mid: 1, fs: app.small ? 12.2 : 11, halo: 1 }, text(best, c));
      if (worst >= 0) pen.text({ x: x[c], y: bottom + 13, mid: 1, fs: app.small ? 12.2 : 11, halo: 1 }, text(worst, c));
    } else {
      const words = pen.text({ x: 0, y: 0, vc: 1, fs: 12, fill: key === p.sort ? "--ink" : "--soft", fw: key === p.sort ? 700 : 400,
        transform: `translate(${x[c]} ${heads}) rotate(-90)` }, data.columns[key]);
      set(words, { still: 1 });
      const hit = svg(pen.g({ class: "lv-clock" }), "rect", { x: x[c] - wide / 2 + 2, y: 2, width: wide - 4, height: heads, rx: 8, class: "lv-hit" });
      sorts.push(hit.parentNode);
    }
    const free = (px, py) => taken.every(([a, b]) => Math.hypot(a - px, b - py) > step - 0.5);
    const ways = range(most).map(i => (i % 2 ? 1 : -1) * Math.ceil(i / 2) * step);
    for (const i of range(board.length).sort((a, b) => (score[b] ?? -1) - (score[a] ?? -1))) {
      let at = null;
      const from = score[i] === null ? bottom + (narrow ? 18 : 27) : y(score[i]);
      for (const down of range(9)) for (const aside of ways) {
        if (!at && free(x[c] + aside, from + down * step)) at = [x[c] + aside, from + down * step];
      }
      taken.push(found[i] = at ?? [x[c], from]);
    }
    return { found, score };
  });
  spots.forEach(({ found, score }, c) => found.forEach(([cx, cy], i) => {
    const known = score[i] !== null;
    const dot = pen.circle({ cx, cy, r: known ? r : r - 1, fill: known ? "--soft" : "none", stroke: known ? "none" : "--soft",
      opacity: inside.has(i) ? known ? 0.75 : 0.6 : app.small ? 0 : 0.13, dash: known ? "none" : "2 1.5" });
    if (!inside.has(i)) return set(dot, { still: 1 });
    set(dot, { style: "cursor:pointer" });
    dot.addEventListener("click", () => app.put({ row: order.indexOf(i) }));
    hover(app, dot, () => speak`${board[i].name}: ${data.columns[keys[c]]} ${known ? text(i, c) : speak`not measured`}`);
    return dot;
  }));
  chooser(app, sorts, "sort", c => speak`sort by ${data.columns[keys[c]]}`);
  const gaps = keys.map(() => pen.path({ fill: "none", sw: 5, cap: 1, opacity: 0.55, still: 1 }));
  const lines = TWO.map(([colour, at, letter]) => {
    const values = keys.map((_, c) => narrow ? null
      : pen.text({ x: x[c], y: H - (at === "row" ? 33 : 13), mid: 1, fs: app.small ? 16 : 12.5, fw: 700, fill: `--${colour}`, halo: 1, still: 1 }));
    const dots = keys.map(() => pen.circle({ r: r + 2, fill: `--${colour}`, rim: 1, still: 1 }));
    return { at, letter, colour, values, dots };
  });
  const nearest = to => {
    const away = order.map(i => Math.hypot(spots[sorted].found[i][0] - to.x, spots[sorted].found[i][1] - to.y));
    return away.indexOf(Math.min(...away));
  };
  for (const line of lines) {
    line.tag = pen.text({ halo: 1, translate: "no", fill: `--${line.colour}`, fw: 700, fs: 14, vc: 1, still: 1 });
    const label = app.table[line.at].label;
    line.grip = grip(app, pic, line.colour, line.at, line.letter, label, () => board[order[app.params[line.at]]]?.name ?? speak`none`);
    slide(app, line.grip, line.at, nearest);
    if (!order.length) set(line.grip, { visibility: "hidden" });
  }
  return () => {
    if (!order.length) return;
    const both = lines.map(({ at }) => order[app.params[at]]);
    const ends = lines.map(({ at }, n) => keys.map((_, c) => spots[c].found[both[n]].map((v, axis) => app.glide(`${at} ${c} ${axis}`, v, 0.4))));
    keys.forEach((_, c) => { // from the worse to the better, in the colour of the better
      const [b, a] = both.map(i => spots[c].score[i]), [[bx, by], [ax, ay]] = ends.map(spot => spot[c]), known = a !== null && b !== null;
      set(gaps[c], { d: known && a !== b ? `M${ax.toFixed(1)} ${ay.toFixed(1)}L${bx.toFixed(1)} ${by.toFixed(1)}` : "M0 0",
        stroke: `var(--${a > b ? "q" : "k"})` });
    });
    lines.forEach(({ values, dots, grip: handle, tag: words, at }, n) => {
      const i = both[n], spot = ends[n], known = keys.map((_, c) => spots[c].score[i] !== null);
      values.forEach((value, c) => value && say(value, known[c] ? text(i, c) : "–"));
      dots.forEach((dot, c) => set(dot, { cx: spot[c][0], cy: spot[c][1], opacity: known[c] ? 1 : 0.45 }));
      const same = both[0] === both[1] && n === 0;
      set(handle, { transform: `translate(${spot[sorted][0] + (same ? 16 : 0)} ${spot[sorted][1]})` });
      set(words, { x: name - 10, ta: "end", y: H - (n ? 33 : 13) });
      say(words, narrow ? "" : board[i].name);
    });
  };
}

/** All rows that are left, in columns of the page: a bar for the rank behind each number, hatched where there is none. */
function list(app, body, order, keys) {
  const { params: p, data } = app, c = place(data, p.sort), score = ranks(data, p.sort);
  const made = order.map((i, n) => {
    const row = html(body, "tr"), head = html(row, "th", { scope: "row" });
    const pins = [...TWO].reverse().map(([colour, , letter]) => {
      const pin = html(head, "span", { class: "lv-pin", style: `color:var(--${colour})` });
      html(pin, "b", {}, letter);
      return pin;
    });
    html(head, "span", { translate: "no" }, data.board[i].name);
    const none = score[i] === null ? { class: "lv-none", "aria-label": speak`not measured` } : {};
    const cell = html(row, "td", none, score[i] === null ? "" : data.board[i].texts[c].replace("-", "−"));
    cell.style.setProperty("--rank", `${(100 * score[i]).toFixed(1)}%`);
    row.addEventListener("click", event => { if (!event.target.closest(".lv-pin")) app.put({ row: n }); });
    return { row, pins };
  });
  [...TWO].reverse().forEach(([, name], k) => chooser(app, made.map(({ pins }) => pins[k]), name,
    n => name === "row" ? speak`${data.board[order[n]].name} as a` : speak`${data.board[order[n]].name} as b`));
  return () => made.forEach(({ row }, n) => row.setAttribute("class", n === p.row ? "lv-a" : n === p.other ? "lv-b" : ""));
}

export const scoreboard = {
  title: speak`The scoreboard of all encodings`, drawn: ["sort", "row", "other"], slide: [], folded: ["shift", "longer"],
  question: speak`Which of two is better, and at what?`,
  sizes: { row: (p, data) => Math.max(1, left(p, data).length), other: (p, data) => Math.max(1, left(p, data).length) },
  shape: ({ params: p }) => [p.which, p.sort, p.door, p.shift, p.longer].join(),
  scene, reached, build,
};
