// Predictions and checks on a page: the notebooks' own cards, with answers that stay in this browser.
// `card` stands before this file: it is course/lesson/card.js.
const KEPT = "how-transformers-know-order";
texts = TEXTS;   // in the language of the site; `say` stands in the card

function kept() {
  try { return JSON.parse(localStorage.getItem(KEPT)) ?? {}; } catch { return {}; }
}
function keep(key, said) {
  try { localStorage.setItem(KEPT, JSON.stringify({ ...kept(), [key]: said })); } catch { /* it is forgotten */ }
}

// ---- predictions ----
/** The number with four digits, as Python's .4g writes it. */
const digits = (v, n) => String(+(+v).toPrecision(n));

const filled = (words, values) => words.replace(/\{(\w+)\}/g, (_, name) => values[name]);

/** What is to be said of an answer; predictions.py says the same in a notebook. */
const COMPARE = {
  choice(asked, said, measured) {
    const right = said === measured, words = asked.choices.find(([name]) => name === said)[1];
    return [right, right ? say("You predicted this.") : filled(say("You predicted: {words}"), { words }), said];
  },
  number(asked, said, measured) {
    const words = `${digits(said, 4)} ${asked.unit}`, off = Math.abs(said - measured);
    if (off <= asked.within) return [true, filled(say("You predicted {words}: close enough."), { words }), "right"];
    const low = said < measured;
    const verdict = low ? say("You predicted {words}: {off} too low.") : say("You predicted {words}: {off} too high.");
    return [false, filled(verdict, { words, off: digits(off, 4) }), low ? "low" : "high"];
  },
  sketch(asked, said, measured) {
    const off = said.map((v, n) => Math.abs(v - measured[n])), n = off.indexOf(Math.max(...off));
    const right = off[n] <= asked.within;
    return [right, filled(say("Your curve is farthest away at {x}: {said}, measured {measured}."),
      { x: asked.x[n], said: digits(said[n], 3), measured: digits(measured[n], 3) }), right ? "right" : "wrong"];
  },
};

const text = words => Object.assign(document.createElement("i"), { textContent: words }).innerHTML;

function told(asked, { value, words }, said) {
  const [right, verdict, name] = said === null ? [null, "", ""] : COMPARE[asked.kind](asked, said, value);
  const why = asked.why ?? {};
  return {
    measured: value, said, right, verdict: text(verdict), words,
    belief: said === null || right ? "" : why[name] ?? "",
    reasons: said === null || right ? [] : asked.reasons?.[name] ?? [],
    meaning: why[asked.kind === "choice" ? value : "right"] ?? "",
    others: (asked.choices ?? []).filter(([other]) => why[other] && other !== value && other !== said)
      .map(([other, own]) => [text(own), why[other]]),
  };
}

/** Open "Why?", which stands between this cell and the next. */
function openBelow(answer) {
  let below = answer.closest(".cell");
  while ((below = below.nextElementSibling) && !below.classList.contains("cell"))
    if (below.tagName === "DETAILS") below.open = true;
}

function prediction(place) {
  const asked = JSON.parse(place.dataset.asked), key = place.dataset.predict, listeners = {};
  const answer = document.querySelector(`[data-told="${key}"]`);
  const known = answer && JSON.parse(answer.dataset.measured), values = { role: "ask", asked, texts, said: kept()[key] ?? null };
  const still = { choice: said => asked.choices.some(([name]) => name === said), number: Number.isFinite,
    sketch: said => said.length === asked.x.length }[asked.kind];
  if (values.said !== null && !still(values.said)) values.said = null;   // the question has been changed since
  const tell = () => {
    values.told = { ...told(asked, known, values.said), reason: kept()[`${key} why`] ?? "" };
    answer.replaceChildren();
    const send = ({ reason }) => { keep(`${key} why`, reason); openBelow(answer); };
    card.render({ model: { send, get: name => ({ ...values, role: "tell" })[name] }, el: answer });
    if (values.said !== null) listeners["change:told"]?.();
  };
  place.replaceChildren();
  card.render({ el: place, model: {
    get: name => values[name],
    on: (name, then) => { listeners[name] = then; },
    off() {},
    send({ commit }) {
      values.said = commit;
      keep(key, commit);
      keep(`${key} why`, "");
      if (known) setTimeout(() => {   // after the card has said that it is noted
        tell();
        answer.closest(".cell").querySelector("details").open = true;
        if (!answer.querySelector(".order-why")) openBelow(answer);
        answer.scrollIntoView({ block: "center" });
      });
    },
  } });
  if (known) tell();
}

// ---- concept checks: the first click counts, every choice has its explanation ----
function check(place) {
  const asked = JSON.parse(place.dataset.check), key = place.dataset.key;
  const set = document.createElement("fieldset"), legend = document.createElement("legend");
  const status = Object.assign(document.createElement("div"), { className: "order-status" });
  status.setAttribute("role", "status");
  set.className = "order-card";
  legend.innerHTML = asked.question;
  const answer = asked.choices.find(([, , right]) => right)[1];
  const choose = (name, label, right, why) => {  // right is null for "I don't know."
    label.dataset.mark = right === null ? "?" : right ? "✔" : "✘";
    status.innerHTML = `<b>${right ? say("Right.") : say("Not quite.")}</b> ${why}`;
    if (right === null) status.firstChild.textContent = filled(say("The answer: {words}"), { words: answer });
    if (!(key in kept())) keep(key, name);
  };
  const labels = asked.choices.map(([name, words, right, why]) => {
    const radio = Object.assign(document.createElement("input"), { type: "radio", name: key });
    const label = document.createElement("label"), span = document.createElement("span");
    span.textContent = words;
    label.append(radio, span);
    radio.addEventListener("change", () => choose(name, label, right, why));
    if (kept()[key] === name) { radio.checked = true; choose(name, label, right, why); }
    return label;
  });
  set.append(legend, ...labels, status);
  place.replaceChildren(set);
}

for (const [selector, start] of [["[data-predict]", prediction], ["[data-check]", check]]) {
  for (const place of document.querySelectorAll(selector)) {
    const without = [...place.childNodes];
    try { start(place); } catch (problem) {   // what stands there without a script stays
      place.replaceChildren(...without);
      console.warn(problem);
    }
  }
}
document.querySelectorAll(".order-open").forEach((one, n) => n && one.remove());   // once is enough
