// ---- one lane: a model that learns a task, and is asked at several lengths -----------------------------------
const TIMES = [.5, .75, 1, 1.25, 1.5, 2, 3, 4, 6, 8];
/** The lengths that a lane is asked at. */
const lengths = ({ L, ask }) => TIMES.filter(times => times <= ask).map(times => Math.round(times * L));
class Run {
  /** task, k, text; L tokens in training, ask times as many at most; H heads, N layers; causal; steps; seed; enc. */
  constructor(config) {
    const { task, k, text, L, ask, H, N, causal, seed, wasm } = config, enc = { ...KINDS[config.enc.kind], ...config.enc };
    const known = task === "text" ? characters(text) : null, V = known ? known.alphabet.length : 8, maxL = L * ask;
    Object.assign(this, config, { enc, s: 0, B: 16, maxL, at: lengths(config) });
    this.options = { V, k, causal, ids: known?.ids };
    this.dice = rng(1000 + seed);
    this.model = new Model({ V: V + (TASKS[task].more || 0), H, N, causal, seed, maxL, maxN: Math.max(16 * L, 8 * maxL), enc: withFormula(enc, { H, maxL }), wasm });
  }
  step() {
    const { model, B, L, steps } = this, [X, Y] = batch(this.task, this.dice, B, L, { ...this.options, training: true });
    model.forward(X, B, L);
    const { loss } = model.loss(Y);
    model.backward();
    model.step(6e-3 * Math.min(1, (this.s + 1) / 30) * Math.max(.1, 1 - this.s / steps * .9));
    this.s++;
    return { loss };
  }
  /** The share of right answers in `many` new texts of each length: the same texts in every lane. */
  measure(many) {
    return this.at.map(l => {
      const dice = rng(9), most = Math.min(many, Math.floor(this.model.maxN / l));
      let right = 0, count = 0;
      for (let left = many; left > 0; left -= most) {
        const size = Math.min(most, left), [X, Y] = batch(this.task, dice, size, l, { ...this.options, test: true });
        const found = this.model.forward(X, size, l).loss(Y);
        right += found.right; count += found.count;
      }
      return right / count;
    });
  }
  /** One text that is half as long again as those of training, and all attention maps. */
  look() {
    const n = Math.round(1.5 * this.L), { model } = this, { H, layers } = model;
    const [X] = batch(this.task, rng(5), 1, n, { ...this.options, test: true });
    model.forward(X, 1, n);
    return { n, X: Array.from(X), maps: layers.map(({ w }) => Float32Array.from(w.subarray(0, H * n * n))) };
  }
  explain(l, h, i, j) { this.look(); return this.model.explain(l, h, i, j); }
  /** What the encoding has learned, or was told: numbers for offsets, a row for each place, or nothing. */
  table() {
    const { model, maxL } = this, { p, H, bias, bh, d } = model;
    if (p.P) return { rows: Array.from({ length: maxL }, (_, i) => Float32Array.from(p.P.subarray(i * d, i * d + d))) };
    if (p.T || ["alibi", "hybrid"].includes(this.enc.kind)) return { offsets: Array.from({ length: H }, (_, h) => Float32Array.from(bias.subarray(h * bh, h * bh + maxL))) };
    return {};
  }
}
