// The playground's page: lanes side by side, each a worker that learns; dials, guesses, and a look inside.
// `engine` and `work` stand above: their texts are the workers' script. SEEDS is what the record says of each task:
// the fewest and the most right answers in a hundred at four times the trained length, for each encoding.

// ---- words ----
const dictionary = {};
/** A text, and what stands in it, in the page's language; "step {0} of {1}" is the key. After ‖ stands a note for translators. */
export function speak(parts, ...values) {
  const key = parts.reduce((so, part, i) => `${so}{${i - 1}}${part}`);
  return (dictionary[key] ?? key.split("‖")[0]).replace(/\{(\d+)\}/g, (_, i) => values[i]);
}
const percent = share => (share === share ? speak`${Math.round(100 * share)} %` : "–");
const signed = x => `${x < 0 ? "−" : "+"}${Math.abs(x).toFixed(2)}`;

// ---- elements ----
function el(parent, tag, attributes = {}, text) {
  const svg = /^(svg|rect|line|text|circle|path)$/.test(tag);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== false) node.setAttribute(name, value === true ? "" : value);
  if (text !== undefined) node.textContent = text;
  parent?.append(node);
  return node;
}
const rule = (parent, x1, x2, y1, y2, kind) => el(parent, "line", { x1, x2, y1, y2, class: `pg-${kind}` });
const on = (node, type, act, more) => node.addEventListener(type, act, more);
const say = (node, text) => { if (node.textContent !== text) node.textContent = text; };
let ids = 0;
/** A control with its label above. */
function field(parent, label, tag, attributes = {}) {
  const box = el(parent, "div", { class: "pg-menu" }), id = `pg${++ids}`;
  el(box, "label", { for: id }, label);
  return el(box, tag, { id, ...attributes });
}
function menu(parent, label, choices, value, change) {
  const select = field(parent, label, "select");
  for (const [key, text] of choices) select.add(new Option(text, key, false, key === value));
  on(select, "change", () => change(select.value));
  return select;
}
function button(parent, text, act, more = {}) {
  const made = el(parent, "button", { type: "button", class: "pg-button", ...more }, text);
  on(made, "click", act);
  return made;
}

// ---- settings: a link keeps all of them ----
const NUMBERS = {
  k: [1, 2, 3, 4, 5, 6, 7, 8], L: [8, 12, 16, 24, 32], ask: [2, 3, 4, 6, 8], H: [1, 2, 3, 4], N: [1, 2, 3], causal: [1, 0], steps: [100, 200, 400, 800, 1600],
  base: [10, 30, 100, 300, 1000, 3000, 10000, 100000], share: [0, .25, .5, .75, 1], slope: [0, .25, .5, 1, 2, 4, 8], clip: [1, 2, 3, 4, 6, 8, 12, 16],
  buckets: [8, 16, 24], far: [16, 32, 64, 128], pace: [10, 50, 0],
};
const START = { task: "back", k: 3, L: 16, ask: 4, H: 2, N: 2, causal: 1, steps: 400, seed: 1, pace: 50 };
const FAMILY = { offset: "relative", t5: "relative", clipped: "relative", shaw: "relative", bias: "relative", angle: "rope" };
const MOST = 6, FEWEST = 2;
const RHYME = "This is the house that Jack built. This is the malt that lay in the house that Jack built. This is the rat that ate the malt that lay in the house that Jack built. This is the cat that chased the rat that ate the malt that lay in the house.";

const written = lane => [lane.kind, ...Object.keys(lane).filter(name => name in NUMBERS).map(name => `${name}:${lane[name]}`),
  ...("formula" in lane ? [`formula:${lane.formula}`] : [])].join(",");
function link(settings) {
  const pairs = Object.keys(START).map(name => [name, settings[name]]);
  if (settings.task === "text") pairs.push(["text", settings.text]);
  pairs.push(...settings.lanes.map(lane => ["lane", written(lane)]));
  return pairs.map(([name, value]) => `${name}=${encodeURIComponent(value).replace(/%2C/g, ",").replace(/%3A/g, ":")}`).join("&");
}
function read(text, { KINDS, TASKS }, narrow) {
  const given = new URLSearchParams(text), found = { ...START, text: (given.get("text") || RHYME).slice(0, 4000) };
  const one = (name, value) => NUMBERS[name].find(each => String(each) === value);
  for (const name of Object.keys(START)) if (name in NUMBERS) found[name] = one(name, given.get(name)) ?? START[name];
  if (Object.hasOwn(TASKS, given.get("task") ?? "")) found.task = given.get("task");
  if (/^\d{1,9}$/.test(given.get("seed") ?? "")) found.seed = +given.get("seed");
  const lanes = given.getAll("lane").slice(0, MOST).map(lane => {
    const [, head, formula] = lane.match(/^([^]*?)(?:,formula:([^]*))?$/), [kind, ...more] = head.split(",");
    if (!Object.hasOwn(KINDS, kind)) return null;
    const made = { kind, ...KINDS[kind] };
    for (const each of more) { const [name, value] = each.split(":"); if (name in made && name in NUMBERS) made[name] = one(name, value) ?? made[name]; }
    if ("formula" in made && formula) made.formula = formula.slice(0, 200);
    return made;
  }).filter(Boolean);
  const usual = narrow ? ["none", "sin", "rope"] : ["none", "sin", "learned", "rope", "alibi", "offset"];
  found.lanes = lanes.length ? lanes : usual.map(kind => ({ kind, ...KINDS[kind] }));
  return fitted(found);
}
/** What does not go together gives way. */
function fitted(settings) {
  while (settings.L * settings.ask > 128) settings.ask = NUMBERS.ask.filter(ask => ask < settings.ask).at(-1);
  settings.k = Math.min(settings.k, settings.L / 2 - 1);
  if (settings.task === "text") settings.causal = 1;
  return settings;
}

// ---- the page ----
/** Brings `root` to life. `settings` is a link's text, `change` hears of a new one; `copy` gives what the button copies. */
export function playground(root, { settings: given = "", change = () => {}, copy, words = {}, title }) {
  Object.assign(dictionary, words);
  const own = engine(), { KINDS, TASKS, FormulaError, withFormula, batch, rng, characters, lengths } = own;
  const NAMES = {
    none: speak`no positions`, sin: speak`sinusoidal`, learned: speak`learned`, rope: "RoPE", alibi: "ALiBi", offset: speak`a bias for each offset`,
    t5: speak`T5’s buckets`, clipped: speak`a clipped bias`, shaw: speak`Shaw’s vectors`, hybrid: speak`sinusoidal + ALiBi`, bias: speak`your own bias`, angle: speak`your own angle`,
  };
  const DIALS = {
    k: speak`places back`, L: speak`tokens in training`, ask: speak`asked up to`, H: speak`heads`, N: speak`layers`, causal: speak`sees`, steps: speak`training steps`, pace: speak`pace`,
    base: speak`base`, share: speak`share that turns`, slope: speak`slopes ×`, clip: speak`clipped at`, buckets: speak`buckets`, far: speak`up to`,
  };
  const TEXTS = {
    back: [speak`the token k places back`, () => speak`At each place, say the token ${settings.k} places back.`],
    copy: [speak`copy a list`, () => speak`Read a list up to the arrow, then say it again.`],
    reverse: [speak`reverse a list`, () => speak`Read a list up to the arrow, then say it backwards.`],
    first: [speak`the first token`, () => speak`At each place, say the first token of the text.`],
    nonzero: [speak`the last token that was not 0`, () => speak`At each 0, say the last token that was not 0.`],
    count: [speak`count the zeros`, () => speak`At each place, say how many zeros there have been so far.`],
    before: [speak`which came first?`, () => speak`Somewhere there is a 0, and somewhere a 1. Once both have come, say which came first.`],
    sort: [speak`sort a list`, () => speak`Read a list up to the arrow, then say it sorted. Here it doesn’t matter in which order the list was read.`],
    text: [speak`your own text`, () => speak`At each place, say the next character. The last fifth of the text is kept for asking.`],
  };
  const shown = {
    ask: times => speak`${times} × as many`, causal: on => (on ? speak`what came before` : speak`the whole text`), share: share => percent(share),
    pace: pace => (pace ? speak`${pace} steps a second` : speak`as fast as it can`),
  };
  let settings = read(given, own, root.clientWidth < 620), lanes = [], running = false, number = 0;
  const source = URL.createObjectURL(new Blob([`(${work})((${engine})());`], { type: "text/javascript" }));

  root.replaceChildren();
  root.classList.add("pg");
  on(root, "keydown", event => { if (!["Escape", "Tab"].includes(event.key)) event.stopPropagation(); }); // JupyterLab changes the cell, reveal.js the slide
  el(root, "p", { class: "pg-lead" }, speak`Each lane is a small Transformer, and it learns here. They start from the same weights, read the same texts, and differ in one thing: how they know where a token stands.`);
  if (title) root.prepend(el(null, "h1", {}, title));
  const bar = el(root, "div", { class: "pg-bar" });
  const start = button(bar, "", () => {
    if (running) { pause(); return; }
    go();
    if (place.getBoundingClientRect().top > innerHeight / 2) place.scrollIntoView({ behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  }, { class: "pg-button pg-start" });
  const step = button(bar, speak`Step`, () => { pause(); lanes.forEach(lane => lane.post({ step: 1 })); });
  button(bar, speak`Another seed`, () => { settings.seed++; reset(); go(); });
  const task = el(root, "div", { class: "pg-task" }), guess = el(root, "p", { class: "pg-guess" });
  const place = el(root, "div", { class: "pg-lanes" }), foot = el(root, "div", { class: "pg-bar" }), add = el(foot, "div", { class: "pg-row" }), live = el(root, "p", { class: "pg-unseen", role: "status" });
  const copies = button(foot, copy ? copy.label : speak`Copy a link`, () => (navigator.clipboard?.writeText(copy ? copy.text(link(settings)) : `${location.href.split("#")[0]}#${link(settings)}`) ?? Promise.reject())
    .then(() => { tell(speak`Copied.`); copies.classList.add("pg-done"); setTimeout(() => copies.classList.remove("pg-done"), 1200); }, () => tell(speak`This browser does not let a page copy: take the address of the page.`)));
  const tell = text => { live.textContent = text; };

  // -- the task, and the dials of all lanes --
  const allowed = { k: x => x < settings.L / 2, ask: x => x * settings.L <= 128, causal: x => x || settings.task !== "text" };
  function dial(parent, name, from, then = reset) {
    const choices = NUMBERS[name].filter(allowed[name] ?? (() => true)).map(x => [x, shown[name]?.(x) ?? String(x)]);
    return menu(parent, DIALS[name], choices, from[name], value => { from[name] = +value; then(); });
  }
  function drawTask() {
    const open = task.querySelector("details")?.open, active = task.contains(document.activeElement) && [...task.querySelectorAll("select")].indexOf(document.activeElement);
    task.replaceChildren();
    const asks = el(task, "div"), row = el(asks, "div", { class: "pg-row" }), reads = el(task, "div");
    menu(row, speak`task`, Object.keys(TASKS).map(name => [name, TEXTS[name][0]]), settings.task, value => { settings.task = value; reset(); });
    if (settings.task === "back") dial(row, "k", settings);
    dial(row, "pace", settings, () => { lanes.forEach(lane => lane.post({ pace: settings.pace })); change(link(settings)); });
    const more = el(asks, "details", { class: "pg-more", open: Boolean(open) });
    el(more, "summary", {}, speak`More dials`);
    const dials = el(more, "div", { class: "pg-row" });
    for (const name of ["L", "ask", "H", "N", "causal", "steps"]) dial(dials, name, settings);
    const seed = field(dials, speak`seed`, "input", { type: "number", min: 0, max: 999999999, step: 1, value: settings.seed });
    on(seed, "change", () => { settings.seed = Math.max(0, Math.min(999999999, Math.floor(+seed.value) || 0)); reset(); });
    el(reads, "p", { class: "pg-asked" }, TEXTS[settings.task][1]());
    if (settings.task === "text") {
      const box = field(asks, speak`your text, up to 4,000 characters`, "textarea", { rows: 3, maxlength: 4000, spellcheck: "false" });
      box.value = settings.text;
      on(box, "change", () => { settings.text = box.value.trim() ? box.value : RHYME; reset(); });
    }
    // one text with its answers
    const known = settings.task === "text" ? characters(settings.text) : null, L = settings.L;
    const [X, Y] = batch(settings.task, rng(5), 1, L, { V: 8, k: settings.k, causal: Boolean(settings.causal), ids: known?.ids, test: true });
    const strip = el(reads, "div", { class: "pg-strip", role: "img", "aria-label": speak`An example. It reads: ${[...X].map(token).join(" ")}. The answers: ${[...Y].map(y => (y < 0 ? "–" : token(y))).join(" ")}.`, style: `--n:${L}` });
    el(strip, "span", {}, speak`reads`);
    for (const x of X) el(strip, "b", {}, token(x));
    el(strip, "span", {}, speak`answers`);
    for (const y of Y) el(strip, "i", {}, y < 0 ? "" : token(y));
    if (active >= 0) task.querySelectorAll("select")[active]?.focus();
  }
  let alphabet = null;
  const token = x => (settings.task === "text" ? ((alphabet ??= characters(settings.text).alphabet)[x] ?? "□").replace(/\s/g, "␣") : x === 8 ? "→" : x > 8 ? "·" : String(x));

  /** A lane by its encoding; beside others of the same kind, also by what differs. */
  function named({ kind, ...more }) {
    const own = Object.keys(more).filter(key => settings.lanes.some(each => each.kind === kind && each[key] !== more[key]));
    return NAMES[kind] + (own.length ? ` (${own.map(key => (key in DIALS ? `${DIALS[key]} ${shown[key]?.(more[key]) ?? more[key]}` : more[key])).join(", ")})` : "");
  }

  // -- one lane --
  function makeLane(told) {
    const lane = { told, s: 0, losses: [], guess: null, cell: null, report: null };
    const box = el(place, "article", { class: "pg-lane" }), head = el(box, "div", { class: "pg-head" });
    el(head, "i", { class: "pg-mark", "aria-hidden": "true" });
    const kinds = el(head, "select", { "aria-label": speak`encoding of this lane` });
    for (const kind of Object.keys(KINDS)) kinds.add(new Option(NAMES[kind], kind, false, kind === told.kind));
    on(kinds, "change", () => {
      const kind = kinds.value;
      for (const key of Object.keys(told)) delete told[key];
      Object.assign(told, { kind, ...KINDS[kind] }); lane.guess = null; lane.dials(); reset(lane);
    });
    const away = button(head, "×", () => { settings.lanes.splice(settings.lanes.indexOf(told), 1); lanes.splice(lanes.indexOf(lane), 1); lane.end(); reset(null); lanes[0].kinds.focus(); }, { class: "pg-away", title: speak`Take this lane away` });
    const wide = el(box, "div"), fault = el(box, "p", { class: "pg-fault", role: "alert" });
    const line = el(box, "div", { class: "pg-line" }), state = el(line, "p", { class: "pg-soft" });
    const curve = el(el(line, "svg", { viewBox: "0 0 100 24", preserveAspectRatio: "none", class: "pg-curve", "aria-hidden": "true" }), "path", { fill: "none" });
    const maps = el(box, "div", { class: "pg-maps", tabindex: 0, role: "group" });
    const bars = el(box, "svg", { class: "pg-bars", viewBox: "0 0 320 146", role: "img" });
    const guessed = el(el(box, "label", { class: "pg-say" }, ""), "input", { type: "range", min: 0, max: 100, step: 1, value: 50 }), verdict = el(box, "p", { class: "pg-verdict" });
    const inside = el(box, "div", { class: "pg-inside", "aria-live": "polite" });
    const said = document.createElement("span");
    guessed.before(said);
    const dials = el(box, "div", { class: "pg-row" }), table = el(box, "details", { class: "pg-more" }), tableName = el(table, "summary"), tableAt = el(table, "div");
    let worker;
    Object.assign(lane, { box, kinds });

    lane.dials = () => {
      dials.replaceChildren(); wide.replaceChildren();
      for (const each of Object.keys(told)) if (each in NUMBERS) dial(dials, each, told, () => reset(lane));
      if (!("formula" in told)) return;
      const bias = told.kind === "bias", line = field(wide, bias ? "b(r, i, j, h) =" : "θ(t) =", "input", { type: "text", maxlength: 200, spellcheck: "false", autocapitalize: "off", autocomplete: "off" });
      line.value = told.formula;
      on(line, "change", () => { told.formula = line.value; reset(lane); });
      el(wide, "p", { class: "pg-soft" }, bias ? speak`r = j − i, of query i and key j; head h of H, counted from 1. It is added to the score. Try −abs(r), r == −3 ? 9 : 0, or j == 0 ? 4 : 0.`
        : speak`Pair t = 0, 1, 2 … of d channels turns by θ at each step to the right. Try 2^−t, 1, or t == 0 ? 2 * pi / 3 : 0.`);
    };
    lane.post = message => worker?.postMessage(message);
    /** A new model of these settings; false where the formula does not allow one. */
    lane.make = () => {
      Object.assign(lane, { s: 0, losses: [], report: null, done: false, id: ++number });
      box.className = `pg-lane pg-${FAMILY[told.kind] ?? told.kind}`;
      dress();
      fault.textContent = "";
      inside.replaceChildren();
      lane.cell = null;
      try { withFormula(told, { H: settings.H, maxL: settings.L * settings.ask }); } catch (problem) {
        if (!(problem instanceof FormulaError)) throw problem;
        say(fault, wrong(problem, told.formula));
        lane.post({ go: false });
        lane.broken = true;
        draw(lane);
        return;
      }
      lane.broken = false;
      if (!worker) {
        worker = new Worker(source);
        worker.onmessage = ({ data }) => hear(data);
        worker.onerror = problem => say(fault, speak`This lane has stopped: ${problem.message}`);
      }
      const { task, k, text, L, ask, H, N, causal, steps, seed, pace } = settings;
      lane.post({ id: lane.id, make: { task, k, text, L, ask, H, N, causal: Boolean(causal), steps, seed, enc: { ...told } }, pace });
    };
    lane.end = () => { worker?.terminate(); box.remove(); };
    function hear(data) {
      if (data.id !== lane.id) return;
      if (data.broken) { say(fault, speak`This lane has stopped: ${data.broken}`); lane.broken = true; return; }
      if (data.told) { explain(data.told); return; }
      if (data.s > lane.s && data.loss !== undefined) lane.losses.push([data.s, data.loss]);
      Object.assign(lane, { s: data.s, report: data, done: data.done });
      draw(lane);
      if (lane.cell && !data.done) lane.ask();
      told_();
    }

    // maps
    let cells = [];
    function dress() {
      maps.replaceChildren();
      cells = [];
      for (let l = 0; l < settings.N; l++) {
        const layer = el(maps, "div", { class: "pg-layer", style: `flex-basis:${settings.N * settings.H > 6 ? "100%" : 0}` });
        el(layer, "span", {}, speak`layer ${l + 1}`);
        const row = el(layer, "div", { class: "pg-heads", style: `--heads:${settings.H}` });
        for (let h = 0; h < settings.H; h++) {
          const map = el(row, "div", { class: "pg-map", style: `--edge:${100 / 1.5}%` }), canvas = el(map, "canvas"), dot = el(map, "b");
          canvas.width = canvas.height = Math.round(1.5 * settings.L);
          const where = event => {
            const at = canvas.getBoundingClientRect(), n = canvas.width, to = (x, size) => Math.max(0, Math.min(n - 1, Math.floor(x / size * n)));
            choose(l, h, to(event.clientY - at.top, at.height), to(event.clientX - at.left, at.width));
          };
          on(map, "pointermove", event => { if (event.pointerType === "mouse") where(event); });
          on(map, "click", where);
          cells.push({ l, h, canvas, dot });
        }
      }
    }
    function choose(l, h, i, j) {
      if (settings.causal && j > i) j = i;
      const now = [l, h, i, j].join();
      if (lane.cell?.join() === now || !lane.report) return;
      lane.cell = [l, h, i, j];
      cells.forEach(each => {
        each.dot.hidden = each.l !== l || each.h !== h;
        const share = x => `${100 * x / each.canvas.width}%`;
        Object.assign(each.dot.style, { left: share(j), top: share(i), width: share(1), height: share(1) });
      });
      lane.ask();
    }
    lane.ask = () => lane.post({ look: lane.cell });
    on(maps, "keydown", event => {
      const [l, h, i, j] = lane.cell ?? [0, 0, 0, 0], n = Math.round(1.5 * settings.L), H = settings.H, all = settings.N * H, keep = x => Math.max(0, Math.min(n - 1, x));
      const move = { ArrowUp: [0, -1, 0], ArrowDown: [0, 1, 0], ArrowLeft: [0, 0, -1], ArrowRight: [0, 0, 1], PageUp: [all - 1, 0, 0], PageDown: [1, 0, 0] }[event.key];
      if (!move) return;
      event.preventDefault();
      const map = lane.cell ? (l * H + h + move[0]) % all : 0;
      choose(Math.floor(map / H), map % H, lane.cell ? keep(i + move[1]) : n - 1, lane.cell ? keep(j + move[2]) : n - 1 - settings.k);
    });
    const PARTS = { content: () => (["sin", "learned", "hybrid"].includes(told.kind) ? speak`tokens and places` : speak`tokens‖part of a score`), vectors: () => speak`query and offset`, bias: () => speak`the bias`,
      tt: () => speak`token and token`, tp: () => speak`token and place`, pt: () => speak`place and token`, pp: () => speak`place and place` };
    function explain({ i, j, parts, pairs, weight, score }) {
      const { X } = lane.report;
      inside.replaceChildren();
      const words = el(inside, "p");
      el(words, "span", { class: "pg-q" }, speak`query ${i} (token ${token(X[i])})`);
      words.append(" → ");
      el(words, "span", { class: "pg-k" }, speak`key ${j} (token ${token(X[j])})`);
      words.append(speak`, r = ${String(j - i).replace("-", "−")}: ${percent(weight)} of its attention`.replace(" = ", "\u00a0=\u00a0"));
      const rows = pairs ? pairs.map(({ theta, score }, t) => [speak`pair ${t}, turned by ${Math.round((j - i) * theta * 57.29578).toString().replace("-", "−")}°`, score]) : Object.entries(parts).map(([key, x]) => [PARTS[key](), x]);
      const most = Math.max(1e-9, ...rows.map(([, x]) => Math.abs(x))), list = el(inside, "div", { class: "pg-parts" });
      for (const [label, x] of [...rows, [speak`score`, score]]) {
        el(list, "span", {}, label);
        const track = el(list, "span", { class: "pg-track" }), width = Math.min(50, 50 * Math.abs(x) / most);
        if (label !== speak`score`) el(track, "i", { style: `width:${width}%;left:${x < 0 ? 50 - width : 50}%` });
        el(list, "span", { class: "pg-sum" }, signed(x));
      }
    }
    /** The lane's colour as it is in this theme. */
    const ink = () => getComputedStyle(head.firstChild).color.match(/[\d.]+/g).map(Number);
    function drawMaps({ maps: all, n }, rgb) {
      const image = new ImageData(n, n), { data } = image;
      for (let c = 0; c < 4 * n * n; c++) data[c] = rgb[c % 4];
      for (const { l, h, canvas } of cells) {
        for (let c = 0; c < n * n; c++) data[4 * c + 3] = 255 * Math.sqrt(all[l][h * n * n + c]);
        canvas.getContext("2d").putImageData(image, 0, 0);
      }
    }

    // bars, and a guess at the last of them
    const X0 = 6;
    let Y0, TALL, H = 146;
    function drawBars() {
      Y0 = H - 38; TALL = Y0 - 24;
      bars.setAttribute("viewBox", `0 0 320 ${H}`);
      const at = lengths(settings), width = (320 - X0) / at.length, beyond = at.findIndex(l => l > settings.L);
      bars.replaceChildren();
      const put = (x, y, text, kind, side = "middle") => el(bars, "text", { x, y, class: `pg-${kind}`, "text-anchor": side }, text), ran = lane.report?.s, shares = ran ? lane.report.shares : [];
      at.forEach((l, i) => {
        const x = X0 + i * width + 3, tall = TALL * (shares[i] || 0), mid = x + width / 2 - 3, last = i === at.length - 1;
        for (const [height, kind] of [[TALL, "room"], [tall, l > settings.L ? "beyond" : "within"]]) el(bars, "rect", { x, y: Y0 - height, width: width - 6, height, rx: 2, class: `pg-${kind}` });
        put(mid, Y0 + 15, l, "note");
        if (last && (lane.guess !== null || !lane.s)) {
          const y = Y0 - TALL * (lane.guess ?? .5);
          rule(bars, x - 5, x + width, y, y, "mine");
          if (!lane.s) el(bars, "circle", { cx: mid, cy: y, r: 9, class: "pg-grip" });
          if (lane.guess === null) put(mid, y + 4, "?", "value");
        }
        if (ran) put(mid, Y0 - tall - 4, shares[i] === shares[i] ? Math.round(100 * shares[i]) : "–", "value");
      });
      rule(bars, X0, 320, Y0, Y0, "axis");
      const edge = X0 + beyond * width, blind = Y0 - TALL / 8;
      if (/back|copy|reverse|first/.test(settings.task)) { // one token of eight; elsewhere it is not one number
        rule(bars, X0, 320, blind, blind, "blind");
        if (!lane.s) put(X0 + 6, blind - 5, speak`by guessing`, "note", "start");
      }
      rule(bars, edge, edge, 4, H - 2, "edge");
      put(X0, 5, speak`100 % right`, "note", "start");
      put(edge - 5, H - 4, speak`trained`, "note", "end");
      put(edge + 5, H - 4, speak`longer than trained`, "note", "start");
      bars.setAttribute("aria-label", ran ? speak`Right answers by length: ${at.map((l, i) => `${l}: ${percent(shares[i])}`).join(", ")}. Trained on ${settings.L} tokens.` : speak`Right answers by length; nothing is learned yet.`);
    }
    function setGuess(share) {
      if (lane.s) return;
      lane.guess = Math.max(0, Math.min(1, share));
      guessed.value = Math.round(100 * lane.guess);
      draw(lane);
    }
    on(guessed, "input", () => setGuess(guessed.value / 100));
    const near = ({ clientX }) => { const { right, width } = bars.getBoundingClientRect(); return !lane.s && clientX > right - 1.6 * width / lengths(settings).length; };
    const pull = ({ clientY }) => { const { top, width } = bars.getBoundingClientRect(); setGuess((Y0 - (clientY - top) * 320 / width) / TALL); };
    new ResizeObserver(() => { H = 320 * bars.clientHeight / bars.clientWidth || 146; drawBars(); }).observe(bars); // on a slide they fill their lane
    on(bars, "touchstart", event => { if (near(event.touches[0])) event.preventDefault(); }); // inside of an SVG, touch-action counts for nothing
    on(bars, "pointerdown", event => { if (near(event)) { bars.setPointerCapture(event.pointerId); pull(event); } });
    on(bars, "pointermove", event => { if (bars.hasPointerCapture(event.pointerId)) pull(event); });

    // what it has learned of places
    function drawTable({ rows, offsets }, rgb) {
      table.hidden = !rows && !offsets;
      if (!table.open || table.hidden) return;
      const n = settings.L * settings.ask;
      tableAt.className = rows ? "pg-rows" : "";
      tableAt.style.setProperty("--edge", `${100 / settings.ask}%`);
      if (!tableAt.firstChild) el(tableAt, rows ? "canvas" : "svg", rows ? {} : { viewBox: "0 0 320 90", class: "pg-bars" });
      const pic = tableAt.firstChild;
      if (rows) {
        const c = rgb, d = rows[0].length, most = Math.max(...rows.map(row => Math.max(...row.map(Math.abs))));
        Object.assign(pic, { width: n, height: d });
        const pen = pic.getContext("2d"), image = pen.createImageData(n, d);
        rows.forEach((row, i) => row.forEach((x, e) => image.data.set(x > 0 ? [c[0], c[1], c[2], 255 * x / most] : [128, 128, 128, -255 * x / most], 4 * (e * n + i))));
        pen.putImageData(image, 0, 0);
        return;
      }
      pic.replaceChildren();
      const low = Math.min(...offsets.map(row => Math.min(...row))), high = Math.max(...offsets.map(row => Math.max(...row))), y = b => 10 + 62 * (high - b) / (high - low || 1), x = i => 4 + 312 * i / (n - 1);
      rule(pic, x(n - settings.L), x(n - settings.L), 2, 76, "edge");
      rule(pic, 4, 316, y(0), y(0), "axis");
      offsets.forEach((row, h) => el(pic, "path", { d: `M${[...row].map((b, i) => `${x(i).toFixed(1)} ${y(b).toFixed(1)}`).join("L")}`, fill: "none", class: "pg-path", "stroke-dasharray": ["", "5 3", "2 3", "8 3 2 3"][h] }));
      el(pic, "text", { x: 4, y: 88, "text-anchor": "start" }, `r = −${n - 1}`);
      el(pic, "text", { x: 316, y: 88, "text-anchor": "end" }, "r = 0");
    }
    on(table, "toggle", () => lane.report && drawTable(lane.report.table, ink()));

    /** What the record of many seeds says of this lane, if it is about it. */
    function known() {
      const { kind } = told, at = 2 * kinds.selectedIndex;
      const asked = link({ ...settings, task: "back", seed: 1, pace: 50, lanes: [told] }), usual = link({ ...START, lanes: [{ kind, ...KINDS[kind] }] });
      return asked === usual ? SEEDS[settings.task]?.slice(at, at + 2) ?? [] : [];
    }

    lane.draw = () => {
      const rgb = ink(), { report, s } = lane, longest = settings.L * settings.ask;
      box.setAttribute("aria-label", named(told));
      maps.setAttribute("aria-label", speak`Attention maps of ${named(told)}: rows are queries, columns are keys. Arrow keys choose a cell, Page Up and Page Down a map.`);
      say(state, lane.broken ? speak`not running` : s === 0 ? speak`not started` : lane.done ? speak`done: ${s} steps, loss ${report.loss.toFixed(2)}` : speak`step ${s} of ${settings.steps} · loss ${report.loss === report.loss ? report.loss.toFixed(2) : "–"}`);
      const top = Math.max(2.2, ...lane.losses.map(([, loss]) => loss).filter(Number.isFinite));
      curve.setAttribute("d", lane.losses.length > 1 ? `M${lane.losses.map(([at, loss]) => `${(at / settings.steps * 100).toFixed(1)} ${(1 + 22 * (1 - (Number.isFinite(loss) ? loss : top) / top)).toFixed(1)}`).join("L")}` : "");
      drawBars();
      guessed.closest("label").hidden = s > 0;
      say(said, lane.guess === null ? speak`your guess at ${longest} tokens` : speak`your guess at ${longest} tokens: ${percent(lane.guess)}`);
      const got = report?.shares.at(-1);
      const seeds = lane.done ? [...new Set(known())].join("–") : "", mine = lane.done && lane.guess !== null ? speak`You said ${percent(lane.guess)}. It got ${percent(got)}.` : "";
      say(verdict, seeds ? `${mine} ${speak`At 64 tokens, 20 seeds gave ${seeds} %.`}`.trim() : mine);
      say(tableName, told.kind === "learned" ? speak`The rows of its table` : speak`Its biases by offset`);
      if (report) { drawMaps(report, rgb); drawTable(report.table, rgb); } else { table.hidden = true; cells.forEach(({ canvas }) => canvas.getContext("2d").clearRect(0, 0, 999, 999)); }
      if (!report) tableAt.replaceChildren();
      away.hidden = lanes.length <= FEWEST;
    };
    lane.dials();
    return lane;
  }
  function wrong({ at, why, name }, text) {
    const before = `${text.slice(0, at)}‸${text.slice(at)}`;
    if (why === "name") return speak`“${name}” is not known here: ${before}`;
    if (why === "function") return speak`“${name}” is no function of this kind: ${before}. There are abs, sign, min, max, floor, ceil, round, sqrt, exp, log, log2, sin and cos.`;
    if (why === "value") return speak`This gives no number that can be used at ${name}.`;
    return speak`This cannot be read from the mark on: ${before}`;
  }

  // -- all lanes --
  const waiting = new Set();
  function paint() { // one lane a frame: six at once would hold up a slow page
    const [lane] = waiting;
    waiting.delete(lane);
    if (lane.box.isConnected) lane.draw();
    if (waiting.size) requestAnimationFrame(paint);
  }
  function draw(lane) {
    if (!waiting.size) requestAnimationFrame(paint);
    waiting.add(lane);
  }
  let heard = -1;
  function told_() {
    const able = lanes.filter(lane => !lane.broken), least = able.length ? Math.min(...able.map(lane => lane.s)) : 0, done = able.length > 0 && able.every(lane => lane.done);
    if (done && running) {
      running = false;
      tell(speak`Done. Right answers at ${settings.L * settings.ask} tokens: ${able.map(lane => `${named(lane.told)} ${percent(lane.report.shares.at(-1))}`).join(", ")}.`);
    } else if (running && Math.floor(4 * least / settings.steps) > heard) {
      heard = Math.floor(4 * least / settings.steps);
      tell(able.map(lane => speak`${named(lane.told)}: step ${lane.s}, loss ${(lane.report?.loss ?? NaN).toFixed(2)}`).join("; "));
    }
    show();
  }
  function show() {
    const able = lanes.filter(lane => !lane.broken), begun = able.some(lane => lane.s > 0), done = able.length > 0 && able.every(lane => lane.done);
    say(start, running ? speak`❚❚ Pause` : done ? speak`▶ Again` : begun ? speak`▶ Go on` : speak`▶ Start`);
    step.disabled = done;
    const off = able.filter(lane => lane.done && lane.guess !== null).map(lane => Math.abs(lane.guess - lane.report.shares.at(-1)));
    say(guess, off.length ? speak`Your guesses were off by ${percent(off.reduce((a, b) => a + b) / off.length)} on average. One run is one draw: try another seed before you trust it.`
      : done ? speak`One run is one draw: try another seed before you trust it. Point at a cell of a map to see what its score is made of.`
      : begun ? speak`A map shows where each token looks: its row is the query, a column is a key. The bars count right answers; the dashed line is where training ends.`
      : speak`Guess first: how many answers will be right at ${settings.L * settings.ask} tokens, when training had ${settings.L}? Drag each lane’s ring, then start.`);
  }
  function go() {
    if (lanes.filter(lane => !lane.broken).every(lane => lane.done)) reset();
    running = true; heard = -1;
    lanes.forEach(lane => lane.broken || lane.post({ go: true }));
    show();
  }
  function pause() {
    running = false;
    lanes.forEach(lane => lane.broken || lane.post({ go: false }));
    show();
  }
  /** Everything anew, or one lane, or (null) no lane. While others run, a lane that begins anew runs, too. */
  function reset(only) {
    fitted(settings);
    alphabet = null;
    if (only === undefined) { running = false; lanes.forEach(lane => lane.make()); drawTask(); } else if (only) { only.make(); if (running && !only.broken) only.post({ go: true }); }
    lanes.forEach(draw);
    drawAdd();
    show();
    change(link(settings));
  }
  function drawAdd() {
    add.replaceChildren();
    if (lanes.length < MOST) {
      const box = menu(add, speak`one more lane`, [["", "…"], ...Object.keys(KINDS).map(kind => [kind, NAMES[kind]])], "", kind => { if (kind) { more({ kind, ...KINDS[kind] }); lanes.at(-1).kinds.focus(); } });
      box.value = "";
    }
    button(add, speak`A duel: two formulas`, () => {
      lanes.splice(0).forEach(lane => lane.end());
      settings.lanes = [{ kind: "bias", formula: "-abs(r) / 2^h" }, { kind: "bias", formula: "r == -3 ? 9 : 0" }];
      build();
    });
  }
  function more(told) {
    settings.lanes.push(told);
    lanes.push(makeLane(told));
    reset(lanes.at(-1));
  }
  function build() {
    lanes = settings.lanes.map(makeLane);
    reset();
  }
  build();
  const theme = matchMedia("(prefers-color-scheme: dark)"), repaint = () => lanes.forEach(draw);
  const switched = new MutationObserver(repaint);
  on(theme, "change", repaint);
  switched.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  return {
    get settings() { return link(settings); },
    get lanes() { return lanes.map(({ s, done, report, guess }) => ({ s, done, guess, shares: report?.shares, loss: report?.loss })); },
    set(text) {
      if (text === link(settings)) return;
      settings = read(text, own, false);
      lanes.splice(0).forEach(lane => lane.end());
      build();
    },
    destroy() {
      theme.removeEventListener("change", repaint);
      switched.disconnect();
      lanes.splice(0).forEach(lane => lane.end());
      URL.revokeObjectURL(source);
      root.replaceChildren();
    },
  };
}
