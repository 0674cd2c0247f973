// What the tests ask of the playground's engine: functions of settings, whose answers JSON can say.
({ Model, Run, KINDS, batch, rng, formula, withFormula }) => {
  const all = views => Object.fromEntries(Object.entries(views).map(([name, numbers]) => [name, Array.from(numbers)]));
  const run = config => new Run({
    task: "back", k: 3, L: 16, ask: 4, H: 2, N: 2, causal: true, steps: 400, seed: 1, enc: { kind: "none" }, ...config });
  return {
    /** One forward and backward of a model whose every parameter counts, and a finite difference. */
    model({ kind, L, causal, N, H, V, B }) {
      const enc = withFormula({ ...KINDS[kind], kind }, { H, maxL: 40 }), r = rng(2);
      const m = new Model({ enc, V, N, causal, H, seed: 5, maxL: 40 });
      for (const p of Object.values(m.p)) if (p.every(x => x === 0)) p.forEach((_, i) => { p[i] = .6 * (r() - .5); });
      const X = Int32Array.from({ length: B * L }, () => r() * V);
      const Y = Int32Array.from({ length: B * L }, () => (r() < .2 ? -1 : r() * V));
      const { loss } = m.forward(X, B, L).loss(Y), logits = Array.from(m.logits.subarray(0, B * L * V));
      const w = m.layers.map(y => Array.from(y.w.subarray(0, B * H * L * L)));
      m.backward();
      const g = all(m.g), p = all(m.p), h = H - 1, row = h * L * L + 9 * L, parts = w.map((weights, l) => ({
        ...m.explain(l, h, 9, 4), row: weights.slice(row, row + 10),
        scores: Array.from({ length: 10 }, (_, j) => m.explain(l, h, 9, j).score) }));
      const way = Array.from(m.params, () => r() - .5), step = 1e-7;
      const at = x => { way.forEach((each, i) => { m.params[i] += x * each; }); return m.forward(X, B, L).loss(Y).loss; };
      const told = way.reduce((sum, x, i) => sum + x * m.grads[i], 0), slope = (at(step) - at(-2 * step)) / (2 * step);
      return { X: Array.from(X), Y: Array.from(Y), logits, w, loss, p, g, slope, told, parts };
    },
    /** Some steps of a lane; `texts` are lengths whose test texts are wanted. */
    run({ steps, texts = [], ...config }) {
      const lane = run(config);
      for (let s = 0; s < steps; s++) lane.step();
      const bits = Array.from(new Uint8Array(lane.model.params.slice().buffer));
      const sets = texts.map(l => batch(lane.task, rng(9), 8, l, { ...lane.options, test: true }).map(a => Array.from(a)));
      return { bits, p: all(lane.model.p), acc: texts.length ? lane.measure(8) : [], at: lane.at, sets };
    },
    kinds: () => Object.keys(KINDS),
    share: share => Array.from(new Model({ V: 8, H: 1, N: 1, maxL: 8, enc: { ...KINDS.rope, kind: "rope", share } }).theta),
    draw: ({ task, L, ...options }) => batch(task, rng(4), 6, L, { V: 8, k: 3, causal: true, ...options }).map(a => Array.from(a)),
    formula({ text, names, values, enc }) {
      try {
        return enc ? withFormula(enc, { H: 2, maxL: 20 }) && "read" : formula(text, names)(...values);
      } catch (problem) {
        if (problem.why === undefined) throw problem;
        return [problem.at, problem.why, problem.name];
      }
    },
  };
}
