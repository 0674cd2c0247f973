// ---- tasks ----------------------------------------------------------------------------------------------
// Each fills one text x and its answers y from random numbers r; -1 where nothing is asked. V are the symbols, `more`
// are tokens besides; n is the length of a list, and what is behind it stays empty.
const pick = (r, n) => Math.floor(r() * n);
/** A list, a sign, and the answer, which a causal model has as far as it has got; others find blanks there. */
function listed(answer) {
  return {
    more: 2, list: true,
    fill(r, x, y, { V, n, causal }) {
      const list = Array.from({ length: n }, () => pick(r, V)), said = answer([...list]);
      x.fill(V + 1); y.fill(-1);
      list.forEach((token, i) => { x[i] = token; y[n + i] = said[i]; if (causal && i < n - 1) x[n + 1 + i] = said[i]; });
      x[n] = V;
    },
  };
}
const TASKS = {
  back: { fill(r, x, y, { V, k }) { for (let i = 0; i < x.length; i++) { x[i] = pick(r, V); y[i] = i >= k ? x[i - k] : -1; } } },
  copy: listed(list => list),
  reverse: listed(list => list.reverse()),
  first: { fill(r, x, y, { V }) { for (let i = 0; i < x.length; i++) { x[i] = pick(r, V); y[i] = x[0]; } } },
  nonzero: {                                         // asked at zeros; half of all tokens are zeros
    fill(r, x, y, { V }) {
      for (let i = 0, last = -1; i < x.length; i++) { const t = 1 + pick(r, V - 1); x[i] = r() < .5 ? 0 : t; if (x[i]) last = x[i]; y[i] = x[i] ? -1 : last; }
    },
  },
  count: {                                           // zeros so far, of at most V - 1 in a text of any length
    fill(r, x, y, { V }) {
      for (let i = 0; i < x.length; i++) x[i] = 1 + pick(r, V - 1);
      for (let many = pick(r, V); many > 0; many--) x[pick(r, x.length)] = 0;
      for (let i = 0, so = 0; i < x.length; i++) { if (!x[i]) so++; y[i] = so; }
    },
  },
  before: {                                          // one 0 and one 1 among others: which came first? asked from the second on
    fill(r, x, y, { V }) {
      for (let i = 0; i < x.length; i++) x[i] = 2 + pick(r, V - 2);
      const a = pick(r, x.length); let b = pick(r, x.length - 1); if (b >= a) b++;
      x[a] = 0; x[b] = 1;
      for (let i = 0; i < x.length; i++) y[i] = i < a || i < b ? -1 : a < b ? 0 : 1;
    },
  },
  sort: listed(list => list.sort((a, b) => a - b)),
  text: {                                            // the next character; the last fifth of the text is only asked
    fill(r, x, y, { ids, test }) {
      const cut = Math.floor(ids.length * .8), [from, size] = test ? [cut, ids.length - cut] : [0, cut];
      for (let i = 0, at = pick(r, size); i < x.length; i++) { x[i] = ids[from + (at + i) % size]; y[i] = ids[from + (at + i + 1) % size]; }
    },
  },
};
/** A text as numbers: its most frequent characters, and one number for all others. */
function characters(text, most = 63) {
  const counts = {};
  for (const c of text) counts[c] = (counts[c] || 0) + 1;
  const alphabet = Object.keys(counts).sort((a, b) => counts[b] - counts[a] || (a < b ? -1 : 1)).slice(0, most);
  const at = new Map(alphabet.map((c, i) => [c, i]));
  if (at.size < Object.keys(counts).length) alphabet.push("\u25a1");
  return { ids: Int32Array.from(text, c => at.get(c) ?? most), alphabet };
}
/** B texts of L tokens: [X, Y]. In training the lists of a batch have another length each time. */
function batch(name, r, B, L, { training, ...options }) {
  const X = new Int32Array(B * L), Y = new Int32Array(B * L), { fill, list } = TASKS[name], longest = L >> 1;
  const n = list && training ? 1 + pick(r, longest) : longest;
  for (let b = 0; b < B; b++) fill(r, X.subarray(b * L, b * L + L), Y.subarray(b * L, b * L + L), { ...options, n });
  return [X, Y];
}
