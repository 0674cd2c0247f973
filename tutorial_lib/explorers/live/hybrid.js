// Hybrid scores: type a formula; each of its terms shows what is the same for all keys, and what remains.
import { canvas, chooser, clamp, drag, grip, hover, html, minus, pens, range, say, scale, set, signed,
  slide, speak, svg, walk } from "./kit.js";

const N = 4, WIDTH = 4; // tokens, and numbers in a vector
const NUMBER = 0, OPEN = -1; // sizes: of a number; of w, which is as long as what it reads
const SIZES = { x_i: WIDTH, x_j: WIDTH, p_i: WIDTH, p_j: WIDTH, r_ij: NUMBER, w: OPEN };
const MOST_TERMS = 5, DEEPEST = 12, LARGEST = 1000, LIMITS = [1, 2, 4, 8, 16, 64, 256, 1024];
const SEEN = 0.0005, CLEAR = 0.05; // the smallest change that is shown; by how much the largest weight must lead
const TOKEN = /\s*(?:([0-9]+\.?[0-9]*|\.[0-9]+)|([A-Za-z_][A-Za-z_0-9]*)|([-+·()[\];]))/y;

// ---- the grammar ----
// score   = [sign] product { sign product }           at most five of them, each one number
// product = factor { ["·"] factor }                   two vectors: their dot product
// factor  = [sign] ( number | name | "relu" "(" score ")" | "(" score ")" | "[" score { ";" score } "]" )
// name    = x_i | x_j | p_i | p_j | r_ij | w          PE_i is p_i, * is ·
// Only what this grammar knows is evaluated.
const X = speak`x_i or x_j`, P = speak`p_i or p_j`;
const SAME = { PE_i: "p_i", PE_j: "p_j", ReLU: "relu" };
const MEANT = { xi: "x_i", xj: "x_j", pi: "p_i", pj: "p_j", rij: "r_ij", r: "r_ij", r_i: "r_ij", x: X, p: P, PE: P,
  W: "w", w_o: "w", W_o: "w", Relu: "relu", Q_i: "x_i", q_i: "x_i", K_j: "x_j", k_j: "x_j" };
const SIGNS = { "−": "-", "–": "-", "*": "·", "×": "·", "⋅": "·", "∙": "·", "@": "·", ",": ";", "{": "", "}": "" };
const SAYS = {
  "=": speak`Type only what comes after “e_ij =”.`,
  "/": speak`There is no division here. Half of r_ij is 0.5·r_ij.`,
  "^": speak`There are no powers here. A square is a product: r_ij·r_ij.`,
};
const COUNTS = { gone: speak`is the same for all keys`, offset: speak`counts by the offset alone`,
  key: speak`counts by the key alone`, pair: speak`counts pair by pair` };
const READS = speak`w is a vector that reads another one: write w·p_i, or w·[p_i; r_ij].`;

class Refused extends Error {}
const refuse = why => { throw new Refused(why); };
const known = (table, word) => Object.hasOwn(table, word);

function tokens(text) {
  const found = [];
  for (let at = 0; text.slice(at).trim();) {
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(text);
    if (!match) {
      const [sign] = text.slice(at).trim();
      refuse(known(SAYS, sign) ? SAYS[sign] : speak`“${sign}” has no meaning here.`);
    }
    const kind = match[1] ? "num" : match[2] ? "name" : "sign", word = match[1] ?? match[2] ?? match[3];
    at = TOKEN.lastIndex;
    found.push({ kind, word, start: at - word.length, end: at });
  }
  return found;
}
/** The summands of a text, `[sign, node]` each; a node is { op, args, start, end }. */
function parsed(text) {
  const left = tokens(text), plus = () => left.length && "+-".includes(left[0].word);
  let last = 0, deep = 0;
  const next = () => left[0]?.word ?? "", take = () => { const token = left.shift(); last = token.end; return token; };
  const sign = () => (take().word === "-" ? -1 : 1);
  function close(mark, opened) {
    if (next() !== mark) {
      refuse(left.length ? speak`“${next()}” stands where a “${mark}” should close the “${opened}”.` : speak`A “${opened}” is not closed.`);
    }
    take();
  }
  function score() {
    const found = [[plus() ? sign() : 1, product()]];
    while (plus()) found.push([sign(), product()]);
    return found;
  }
  function whole() {
    deep += 1;
    if (deep > DEEPEST) refuse(speak`There are too many brackets inside each other.`);
    const [[first, node], ...more] = score();
    deep -= 1;
    return more.reduce((a, [by, b]) => ({ op: by > 0 ? "add" : "sub", args: [a, b], start: a.start, end: b.end }),
      first < 0 ? { ...node, op: "neg", args: [node] } : node);
  }
  function product() {
    let node = factor();
    while (left.length && ("·([".includes(next()) || left[0].kind !== "sign")) {
      if (next() === "·") take();
      const other = factor();
      node = { op: "mul", args: [node, other], start: node.start, end: other.end };
    }
    return node;
  }
  function factor() {
    if (!left.length) refuse(last ? speak`Something is missing at the end.` : speak`Type a score, such as x_i·x_j + r_ij.`);
    const { kind, word, start, end } = take();
    if (word === "-") {
      const node = factor();
      return { op: "neg", args: [node], start, end: node.end };
    }
    if (kind === "num") {
      if (+word > LARGEST) refuse(speak`${word} is too large; numbers go up to ${LARGEST}.`);
      return { op: "num", args: [+word], start, end };
    }
    if (kind === "name") return name(known(SAME, word) ? SAME[word] : word, start, end);
    if (word === "(") {
      const node = whole();
      close(")", "(");
      return { ...node, start, end: last };
    }
    if (word === "[") return stack(start);
    return refuse(speak`Something is missing before “${word}”.`);
  }
  function name(word, start, end) {
    if (word === "relu") {
      if (next() !== "(") refuse(speak`relu needs brackets, as in relu(w·p_i).`);
      take();
      const node = whole();
      close(")", "(");
      return { op: "relu", args: [node], start, end: last };
    }
    if (!known(SIZES, word)) {
      refuse(known(MEANT, word) ? speak`“${word}” has no meaning here. Did you mean ${MEANT[word]}?`
        : speak`“${word}” has no meaning here. There are x_i, x_j, p_i, p_j, r_ij, w and relu( ).`);
    }
    return { op: "name", args: [word], start, end };
  }
  function stack(start) {
    const args = [whole()];
    while (next() === ";") {
      take();
      args.push(whole());
    }
    close("]", "[");
    return { op: "stack", args, start, end: last };
  }
  const found = score();
  if (left.length) refuse(next() === ";" ? speak`“;” stacks parts inside of [ ] only.` : speak`There is a “${next()}” too many.`);
  return found;
}
const sized = size => (size ? speak`a vector of ${size} numbers` : speak`one number`);
function size(node, text, data) {
  const { op, args } = node, words = part => text.slice(part.start, part.end);
  if (op === "num") return NUMBER;
  if (op === "name") return SIZES[args[0]];
  const found = args.map(part => size(part, text, data)), [a, b] = found;
  if (op === "mul") {
    if (a === OPEN && b === OPEN) refuse(READS);
    if (found.includes(NUMBER)) return a + b;
    if (a !== b && !found.includes(OPEN)) {
      refuse(speak`${words(args[0])} has ${a} numbers and ${words(args[1])} has ${b}: a dot product needs as many on both sides.`);
    }
    return NUMBER;
  }
  if (op === "neg") return a;
  if (found.includes(OPEN)) refuse(READS);
  if (op === "stack") {
    const many = found.reduce((sum, each) => sum + Math.max(1, each), 0);
    if (many > data.W.length) refuse(speak`A stack of ${many} numbers is too long; ${data.W.length} fit.`);
    return many;
  }
  if (op !== "relu" && a !== b) refuse(speak`${words(args[0])} is ${sized(a)}, ${words(args[1])} is ${sized(b)}: they can't be added.`);
  return a;
}
function read(typed, data) {
  const text = [...typed].map(sign => SIGNS[sign] ?? sign).join(""), found = parsed(text);
  if (found.length > MOST_TERMS) refuse(speak`${found.length} terms are too many for this picture; ${MOST_TERMS} fit.`);
  return found.map(([sign, node]) => {
    const part = text.slice(node.start, node.end), many = size(node, text, data);
    if (many === OPEN) refuse(READS);
    if (many) {
      const inside = ["add", "sub"].includes(node.op) && part[0] !== "(" ? `(${part})` : part;
      refuse(speak`${part} is ${sized(many)}, but a score is one number: they can't be added. A head has to read the vector first, as in w·${inside}.`);
    }
    return { text: sign > 0 ? part : `−${part}`, sign, node };
  });
}

// ---- its numbers ----
const list = Array.isArray, through = (a, f) => (list(a) ? a.map(f) : f(a));
function times(a, b) {
  if (list(a) && list(b)) return range(Math.min(a.length, b.length)).reduce((sum, n) => sum + a[n] * b[n], 0);
  return list(a) ? a.map(u => u * b) : through(b, v => a * v);
}
function worked({ op, args }, names) {
  if (op === "num") return args[0];
  if (op === "name") return names[args[0]];
  const parts = args.map(part => worked(part, names)), [a, b] = parts;
  if (op === "stack") return parts.flat();
  if (op === "mul") return times(a, b);
  if (op === "relu") return through(a, v => Math.max(v, 0));
  if (op === "neg") return through(a, v => -v);
  const sign = op === "add" ? 1 : -1;
  return list(a) ? a.map((u, n) => u + sign * b[n]) : a + sign * b;
}
const table = cell => range(N).map(i => range(N).map(j => cell(i, j)));
const softmax = row => {
  const powers = row.map(v => Math.exp(v - Math.max(...row))), sum = powers.reduce((a, b) => a + b);
  return powers.map(v => v / sum);
};
const mean = row => row.reduce((a, b) => a + b) / row.length, remains = values => values.map(row => row.map(v => v - mean(row)));
function kind(values) {
  const rest = remains(values), flat = values.flat().map(Math.abs), least = 1e-6 * Math.max(1, ...flat), own = values.map((row, i) => row.map(v => v - row[i]));
  const every = test => values.every((row, i) => row.every((v, j) => Math.abs(test(i, j)) < least));
  if (every((i, j) => rest[i][j])) return "gone";
  if (every((i, j) => (i && j ? own[i][j] - own[i - 1][j - 1] : 0))) return "offset";
  return every((i, j) => rest[i][j] - rest[0][j]) ? "key" : "pair";
}
const without = (row, part) => softmax(row.map((v, j) => v - part[j]));
const moved = (e, part) => Math.max(0, ...e.flatMap((row, i) => {
  const rest = without(row, part[i]);
  return softmax(row).map((v, j) => Math.abs(v - rest[j]));
}));
const made = {}; // the last text and its result: three callers ask for the same
/** All about a score: its terms, what they do, and their sum; or why it is refused. */
function lab(score, data) {
  if (made.score === score && made.data === data) return made.lab;
  let terms = [], refused = "";
  try {
    terms = read(score, data).map(({ text, sign, node }) => ({ text, values: table((i, j) => sign * worked(node, {
      x_i: data.X[i], x_j: data.X[j], p_i: data.P[i], p_j: data.P[j], r_ij: data.W_R[j - i + N - 1], w: data.W })) }));
    const large = terms.find(({ values }) => Math.max(...values.flat().map(Math.abs)) > LARGEST);
    if (large) refuse(speak`${large.text} gets larger than ${LARGEST}: too much to be drawn.`);
  } catch (problem) {
    if (!(problem instanceof Refused)) throw problem;
    [terms, refused] = [[], problem.message];
  }
  const e = terms.reduce((sum, { values }) => sum.map((row, i) => row.map((v, j) => v + values[i][j])), table(() => 0));
  for (const term of terms) Object.assign(term, { kind: kind(term.values), moved: moved(e, term.values), rest: remains(term.values) });
  Object.assign(made, { score, data, lab: { terms, refused, e, rest: remains(e) } });
  return made.lab;
}
const joined = terms => terms.map(({ text }, n) => (n ? (text[0] === "−" ? ` − ${text.slice(1)}` : ` + ${text}`) : text)).join("");

export function scene({ guess, query, score }, data) {
  const { terms, refused, e, rest } = lab(score, data), seen = softmax(e[query]).map(v => v.toFixed(2)).join(", ");
  const told = guess === "first" ? terms.length > 1 ? speak`${terms.length} to guess` : speak`one to guess` : terms.map(({ text, kind: how, moved: by }) =>
    (by > SEEN ? speak`${text} ${COUNTS[how]} (without it, a weight changes by ${by.toFixed(2)})` : speak`${text} ${COUNTS[how]}`)).join(speak`, `);
  const gone = terms.filter(({ kind: how }) => how === "gone").length;
  const result = refused ? "" : guess === "first" ? speak`Guess first: if a term is left out, does any weight change?`
    : speak`The softmax takes out ${gone} of ${terms.length}: what is the same for all keys changes no weight.`;
  return { views: { scores: e, remains: rest }, result, description: refused ? speak`“${score}” is no score. ${refused}`
    : speak`Score of four tokens, e_ij = ${joined(terms)}: ${told}; query ${query} gives the weights ${seen}.` };
}
export function reached({ score }, data) {
  const { refused, e } = lab(score, data), rows = e.map(softmax), best = rows.map(row => row.indexOf(Math.max(...row)));
  const lead = Math.min(...rows.map(row => { const [a, b] = [...row].sort((u, v) => v - u); return a - b; }));
  if (refused || score.includes("x_") || new Set(best).size > 1 || lead < CLEAR) return "";
  return speak`“${data.WORDS[best[0]]}” gets ${Math.min(...rows.map(row => Math.max(...row))).toFixed(2)} or more of each query's attention.`;
}

// ---- the picture ----
const TOLD = { offset: speak`by the offset alone`, key: speak`by the key alone`, pair: speak`pair by pair` };
const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** Coloured cells, with numbers where they fit; returns the function that fills them. */
function cells(pen, { palette }, x, y, wide, high, columns = N) {
  const own = pens(pen.g()), places = wide > 36 && high < 36 ? 2 : 1;
  const made = range(N).map(i => range(columns).map(j => [
    own.rect({ x: x + j * wide, y: y + i * high, width: wide - 1, height: high - 1, rx: high > 24 ? 3 : 1 }),
    wide > 30 && high > 14 && own.text({ x: x + (j + 0.5) * wide - 0.5, y: y + (i + 0.5) * high, mid: 1, still: 1, fs: wide > 44 ? 15 : wide > 33 ? 12 : 11 })]));
  return (values, limit) => made.forEach((row, i) => row.forEach(([box, text], j) => {
    const { fill, ink } = signed(palette, values[i][j] / limit);
    set(box, { fill });
    if (!text) return;
    set(text, { fill: ink });
    say(text, minus(values[i][j].toFixed(Math.abs(values[i][j]) < 9.5 ? places : 0)).replace(/^−(0\.?0*)$/, "$1"));
  }));
}
/** A button in the picture. */
function button(pen, x, y, wide, words, act, key) {
  const g = pen.g({ role: "button", tabindex: 0, class: "lv-clock", "data-key": key }), own = pens(g);
  own.rect({ x, y: y - 14, width: wide, height: 28, rx: 14, fill: "--face", stroke: "--soft" });
  own.rect({ x, y: y - 14, width: wide, height: 28, rx: 14, class: "lv-hit" });
  own.text({ x: x + wide / 2, y, mid: 1, fill: "--ink", still: 1, fs: 13.5 }, words);
  g.addEventListener("click", act);
  g.addEventListener("keydown", event => {
    if (!["Enter", " "].includes(event.key)) return;
    event.preventDefault();
    act();
  });
}

/** The last text that was a valid score stays in the picture, pale, while you type another one. */
function current(app) {
  const now = lab(app.params.score, app.data);
  if (!now.refused) app.good = app.params.score;
  return { now, good: now.refused ? lab(app.good ?? app.data.parameters.score.start, app.data) : now };
}
const guesses = app => (app.guesses ??= new Map());
const open = (app, { text }) => app.params.guess === "off" || guesses(app).has(text);

function build(app, stage) {
  const { params: p, data } = app, all = range(N), { now, good: { terms, e } } = current(app), score = app.good ?? p.score;
  const W = app.width(stage), below = stage.clientWidth < 600, message = html(stage, "p", { class: "lv-says" });
  const names = terms.map(({ text }, n) => (n ? text.replace(/^(−?)/, (_, sign) => `${sign || "+"} `) : text));
  const x1 = clamp(Math.max(...names.map(name => name.replaceAll("_", "").length)) * 8 + 36, 88, 150);
  const large = app.small && terms.length < 3, edge = below ? 132 : large ? 196 : 164, left = below ? 0 : W - edge - (app.small ? 0 : 48); // the words of the queries stand at its right
  const narrow = below || !app.small && left - x1 < 570, lane = below ? W : left - 40, gap = narrow ? 14 : 20;
  const cw = narrow ? Math.min(38, (lane - 2 * gap) / 9) : large ? 28 : app.small ? 34 : 38, fs = large ? 16 : 13;
  const tall = narrow ? 158 : terms.length < 3 ? 150 : app.small && terms.length > 3 ? 74 : [112, 86, 70][terms.length - 3] - 20 * app.small;
  const side = narrow ? 88 : tall - 18, lanes = narrow ? 12 : 36, ch = side / N;
  const at = terms.map((_, n) => lanes + terms.slice(0, n).reduce((sum, term) => sum + tall - 24 * (narrow && !open(app, term)), 0));
  const xs = narrow ? 0 : x1, x2 = xs + N * cw + gap, x3 = x2 + cw + gap, x4 = x3 + N * cw + gap - 5, room = lane - x4 > 150;
  const end = at.at(-1) + tall;
  const top = below ? end + 40 : narrow ? 40 : lanes, high = below ? 100 : app.small ? 60 : 88;
  const bx = below ? 170 : left, bars = below ? top + edge : top + edge + 30 + high;
  const H = below ? bars + 26 : Math.max(end, bars + 24);
  const [pic, pen] = canvas(stage, W, H, speak`Terms of a score, what remains of each, and the weights`);
  const keys = (x, wide, y) => wide > 30 && all.forEach(j => pen.text({ x: x + (j + 0.5) * wide, y, mid: 1, fill: "--k", fs: large ? 14.5 : app.small ? 13 : Math.min(12, wide / 3.2), translate: "no" }, data.WORDS[j]));
  if (!narrow) {
    [[speak`the term`, x1 + 2 * cw], [speak`mean`, x2 + cw / 2], [speak`what remains`, x3 + 2 * cw]].forEach(([words, x]) => pen.text({ x, y: 8, mid: 1, fs }, words));
    if (!app.small) keys(x1, cw, 26);
  }

  // -- one lane for each term --
  const marks = [], painters = [], limit = LIMITS.find(most => Math.max(...terms.flatMap(({ values, rest }) => [...values, ...rest].flat()).map(Math.abs)) <= most) ?? 1024;
  const rows = terms.map((term, n) => {
    const y = at[n], my = narrow ? y + 32 : y, mid = my + side / 2, seen = open(app, term), gone = term.kind === "gone";
    const mark = pen.g({ style: "cursor:pointer" }), own = pens(mark);
    const lit = own.rect({ x: 1, y: narrow ? y - 3 : mid - 17, height: narrow ? 28 : 34, rx: 8, fill: "--face", stroke: "--line" });
    const words = own.text({ x: 9, y: narrow ? y + 11 : mid, vc: 1, fill: "--ink", fw: 600, fs: narrow || names[n].length < 16 ? 15 : 12.5, still: 1, translate: "no" }, short(names[n], narrow ? 38 : 20));
    set(lit, { width: narrow ? words.getComputedTextLength() + 16 : x1 - 18 });
    hover(app, mark, () => (term.text.length > 20 ? term.text : speak`Click to see the weights without this term`));
    marks.push(mark);
    cells(pen, data, xs, my, cw, ch)(term.values, limit);
    const framed = x => pen.rect({ x: x - 1.5, width: N * cw + 2, height: ch + 2, fill: "none", stroke: "--q", sw: 2, rx: 2 }), frames = [framed(xs)];
    const line = (words, x, y, more = {}) => pen.text({ x, y, vc: 1, fs: fs - 0.5, fill: "--ink", ...more }, words);
    if (seen || room) [["−", x2], ["=", x3]].forEach(([sign, x]) => pen.text({ x: x - gap / 2 - 1, y: mid, mid: 1, fs: 16 }, sign));
    if (!seen) {
      const x = room ? x4 : x2, up = tall < 80 ? 4 : 0;
      if (room) [[x2, cw], [x3, N * cw]].forEach(([at, width]) => {
        pen.rect({ x: at, y: my, width: width - 1, height: side - 1, rx: 4, fill: "none", stroke: "--line", sw: 1.5, dash: "4 4" });
        pen.text({ x: at + width / 2, y: mid, mid: 1, fs: 20 }, "?");
      });
      line(speak`Leave it out:`, x, mid - 30 + up, { fs: fs + 0.5 });
      line(speak`does a weight change?`, x, mid - 13 + up + 2 * large, { fs: fs + 0.5 });
      const tell = way => () => { guesses(app).set(term.text, way); app.on = true; app.set({}); };
      button(pen, x, mid + 16 - up / 2, 62, speak`yes`, tell(true), `yes${n}`);
      button(pen, x + 72, mid + 16 - up / 2, 62, speak`no`, tell(false), `no${n}`);
    } else {
      const way = guesses(app).get(term.text), lines = gone ? [speak`gone: the same for`, speak`all keys`] : [speak`counts,`, TOLD[term.kind]];
      const sure = app.params.guess === "off" || way === undefined ? "" : way !== gone ? speak`✔ as you said` : way ? speak`✘ you said yes` : speak`✘ you said no`;
      const parts = [cells(pen, data, x2, my, cw, ch, 1), cells(pen, data, x3, my, cw, ch)];
      frames.push(framed(x3));
      const cut = `n${score}|${term.text}`;
      painters.push(() => { // the reader sees what is the same for all keys being taken out
        const share = app.glide(cut, app.cut?.has(cut) ? 1 : 0, 0.005);
        (app.cut ??= new Set()).add(cut);
        parts[0](term.values.map(row => [share * mean(row)]), limit);
        parts[1](term.values.map(row => row.map(v => v - share * mean(row))), limit);
        if (share < 1) app.wake();
      });
      const strong = { fs: fs + 0.5, fw: 600, fill: gone ? "--soft" : "--mix" }, by = gone ? speak`no weight changes` : speak`weights change by ≤ ${term.moved.toFixed(2)}`;
      if (narrow) {
        line(gone ? lines.join(" ") : TOLD[term.kind], 0, my + side + 14, strong);
        line(by, lane, my + side + 14, { ta: "end" });
        line(sure, lane, y + 11, { ta: "end" });
      } else {
        const told = [...lines, by, sure].filter(Boolean), step = Math.min(large ? 22 : 18, (side + 8) / told.length);
        told.forEach((words, k) => line(words, x4, mid + (k - (told.length - 1) / 2) * step, k < lines.length ? strong : {}));
      }
    }
    return { y: my, frames, lit };
  });
  chooser(app, marks, "term", n => speak`weights without ${terms[n]?.text}`);

  // -- their sum, for all queries, and the weights of one --
  const cell = edge / N, whole = cells(pen, data, left, top, cell, cell), sum = LIMITS.find(most => Math.max(...e.flat().map(Math.abs)) <= most) ?? 5120;
  const head = (x, wide, y) => pen.text({ x: below ? x : x + wide / 2, y, vc: 1, ta: below ? "start" : "middle", fill: "--ink", fw: 700, fs });
  say(head(left, edge, top - 28), speak`= the score e_ij`);
  keys(left, cell, top - 10);
  if (!below && !app.small) all.forEach(i => pen.text({ x: left + edge + 8, y: top + (i + 0.5) * cell, vc: 1, fill: "--q", fs: 12, translate: "no" }, data.WORDS[i]));
  const frame = pen.rect({ x: left - 2, width: edge + 3, height: cell + 3, fill: "none", stroke: "--q", sw: 2.5, rx: 4 });
  const area = pen.rect({ x: left, y: top, width: edge, height: edge, fill: "#0000", style: "cursor:pointer;touch-action:pan-y" });
  const row = to => (to.y - top) / cell - 0.5, hold = to => app.hold("query", row(to));
  drag(app, area, "query", { down: hold, move: hold });
  const query = grip(app, pic, "q", "query", "i", speak`query i`, () => speak`query ${p.query}, ${data.WORDS[p.query]}`);
  slide(app, query, "query", row);
  const wide = below ? (W - bx) / N : cell, height = scale(0, 1, 0, high), label = head(bx, wide * N, below ? top - 28 : bars - high - 10);
  pen.line({ x1: bx, x2: bx + N * wide, y1: bars, y2: bars, stroke: "--line", sw: 2 });
  const columns = all.map(j => {
    const at = bx + (j + 0.5) * wide, half = wide * 0.36;
    pen.text({ x: at, y: bars + 15, mid: 1, fill: "--k", fs: large ? 14.5 : app.small ? 13 : below ? 11 : 12, translate: "no" }, data.WORDS[j]);
    return [pen.rect({ x: at - half, width: half - 1, rx: 2, fill: "--mix2", stroke: "--mix", sw: 1, dash: "3 2" }),
      pen.rect({ width: half, rx: 2, fill: "--mix" }), pen.text({ ta: "middle", fill: "--ink", fs: app.small ? fs : 11.5 }), at, half];
  });
  whole(e, sum);
  if (app.on) pic.querySelector("[role=button]")?.focus({ preventScroll: true }); // from guess to guess by keys
  app.on = false;

  return () => {
    const i = p.query, at = app.shown.query, n = clamp(p.term, 0, terms.length - 1), term = terms[n], full = softmax(e[i]), rest = without(e[i], term.values[i]);
    const hidden = !open(app, term), refused = current(app).now.refused;
    say(message, refused || (below ? speak`r_ij: a number for each offset; w: learned.` : speak`x: tokens, p: sinusoids, both vectors of 4 numbers. r_ij: one number for each offset. w: learned, reads a vector.`));
    set(message, { class: `lv-says${refused ? " lv-not" : ""}` });
    set(pic, { opacity: refused ? 0.35 : 1 });
    painters.forEach(paint => paint());
    rows.forEach(({ y, frames, lit }, k) => {
      frames.forEach(box => set(box, { y: y + at * ch - 1.5 }));
      set(lit, { fill: k === n ? "--mix2" : "--face", stroke: k === n ? "--mix" : "--line", sw: k === n ? 2 : 1 });
    });
    set(frame, { y: top + at * cell - 2 });
    set(query, { transform: `translate(${below ? edge + 22 : left - 22} ${top + (at + 0.5) * cell})` });
    say(label, speak`weights of “${data.WORDS[i]}”`);
    columns.forEach(([before, after, text, at, half], j) => {
      const from = hidden ? at - half / 2 : at; // alone it stands above its word
      const [a, b] = [hidden ? 0 : app.glide(`a${j}`, rest[j], 0.002), app.glide(`b${j}`, full[j], 0.002)].map(height);
      set(before, { y: bars - a, height: a });
      set(after, { x: from, y: bars - b, height: b });
      set(text, { x: from + half / 2, y: bars - b - 5 });
      say(text, full[j].toFixed(2));
    });
  };
}

export const hybrid = {
  title: speak`Hybrid scores: type a formula, and see which terms the softmax takes out`,
  question: speak`Which terms of a score does the softmax take out?`,
  smooth: ["query"], drawn: ["term"], main: "score", slide: ["score"], own: { term: { label: speak`term`, size: 5, start: 4 } },
  plays: { rows: speak`from query to query` }, shape: app => `${current(app).good.terms.map(term => `${term.text}${open(app, term)}`)}`, scene, reached, build,
  play: (app, how, dt, now) => walk(app, "query", "query", false, 1.5, dt, now),
};
