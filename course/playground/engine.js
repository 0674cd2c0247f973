// A tiny Transformer that learns in a web page: backward pass by hand, no dependency.
// All numbers are float64. Only + - * / sqrt and integer operations are used, in one fixed order, and no
// Math.exp, log, pow, sin, cos: these may differ from engine to engine. So every engine computes the same bits.

// ---- elementary functions -------------------------------------------------------------------------------
const LN2_HI = 6.93147180369123816490e-01, LN2_LO = 1.90821492927058770002e-10;  // their sum is ln 2
const POW2 = new Float64Array(2100);                                            // POW2[k + 1074] = 2^k, exactly
for (let k = 0, up = 1; k < 1024; k++, up *= 2) POW2[k + 1074] = up;
for (let k = 0, down = 1; k <= 1074; k++, down /= 2) POW2[1074 - k] = down;

function exp(x) {                                    // 2^k e^r with |r| <= ln 2 / 2; error about 1 ulp
  if (!(x > -745)) return x === x ? 0 : x;
  if (x > 709) return Infinity;
  const k = Math.floor(x * 1.4426950408889634 + 0.5), r = x - k * LN2_HI - k * LN2_LO, s = r * r;
  const even = 1 + s * (1 / 2 + s * (1 / 24 + s * (1 / 720 + s * (1 / 40320 + s * (1 / 3628800 + s / 479001600)))));
  const odd = 1 + s * (1 / 6 + s * (1 / 120 + s * (1 / 5040 + s * (1 / 362880 + s * (1 / 39916800 + s / 6227020800)))));
  return (even + r * odd) * POW2[k + 1074];          // cosh r + sinh r
}
function log(x) {                                    // for x > 0: k ln 2 + 2 artanh((m - 1) / (m + 1))
  let k = 0;
  while (x > 1.4142135623730951) { x /= 2; k++; }
  while (x < 0.7071067811865476) { x *= 2; k--; }
  const s = (x - 1) / (x + 1), q = s * s;
  let sum = 0;
  for (let n = 23; n > 0; n -= 2) sum = sum * q + 1 / n;
  return k * LN2_HI + (2 * s * sum + k * LN2_LO);
}
function exp2(x) { const k = Math.floor(x); return POW2[k + 1074] * exp((x - k) * 0.6931471805599453); }
function sincos(x) {                                 // [sin x, cos x], for |x| up to about 1e5
  const k = Math.floor(x * 0.6366197723675814 + 0.5), r = x - k * 1.5707963267341256 - k * 6.077100506506192e-11, s = r * r;
  let sin = 0, cos = 0;
  for (let n = 18; n > 0; n -= 2) { sin = (1 + sin) * -s / (n * (n + 1)); cos = (1 + cos) * -s / (n * (n - 1)); }
  sin = r + r * sin; cos = 1 + cos;
  return [[sin, cos], [cos, -sin], [-sin, -cos], [-cos, sin]][((k % 4) + 4) % 4];
}

// ---- random numbers -------------------------------------------------------------------------------------
function rng(seed) {                                 // mulberry32, in [0, 1)
  let s = seed >>> 0;
  return () => {
    s = (s + 0x6D2B79F5) | 0;
    let t = Math.imul(s ^ s >>> 15, 1 | s);
    t = t + Math.imul(t ^ t >>> 7, 61 | t) ^ t;
    return ((t ^ t >>> 14) >>> 0) / 4294967296;
  };
}
function gauss(r) { let s = -6; for (let i = 0; i < 12; i++) s += r(); return s; }  // variance 1, near enough

// ---- the one matrix product -----------------------------------------------------------------------------
// C[i, j] = sum over p of A[i, p] B[p, j], or += with add. An array comes with an offset and two strides, so
// transposes and heads need no copy. Tiles of 2 x 4: eight sums stay in registers, and six loads feed them.
function product(C, co, ci, A, ao, ai, ap, B, bo, bp, bj, n, k, m, add) {
  const n2 = n & ~1, m4 = m & ~3;
  for (let i = 0; i < n2; i += 2) {
    for (let j = 0; j < m4; j += 4) {
      let c = co + i * ci + j, x = ao + i * ai, y = bo + j * bj;
      let s0 = 0, s1 = 0, s2 = 0, s3 = 0, t0 = 0, t1 = 0, t2 = 0, t3 = 0;
      for (let p = 0; p < k; p++) {
        const a = A[x], e = A[x + ai], b0 = B[y], b1 = B[y + bj], b2 = B[y + 2 * bj], b3 = B[y + 3 * bj];
        s0 += a * b0; s1 += a * b1; s2 += a * b2; s3 += a * b3;
        t0 += e * b0; t1 += e * b1; t2 += e * b2; t3 += e * b3;
        x += ap; y += bp;
      }
      if (add) {
        s0 += C[c]; s1 += C[c + 1]; s2 += C[c + 2]; s3 += C[c + 3];
        t0 += C[c + ci]; t1 += C[c + ci + 1]; t2 += C[c + ci + 2]; t3 += C[c + ci + 3];
      }
      C[c] = s0; C[c + 1] = s1; C[c + 2] = s2; C[c + 3] = s3;
      C[c + ci] = t0; C[c + ci + 1] = t1; C[c + ci + 2] = t2; C[c + ci + 3] = t3;
    }
  }
  for (let i = 0; i < n; i++) {                      // what the tiles leave: the last row, the last columns
    for (let j = i < n2 ? m4 : 0; j < m; j++) {
      let s = 0;
      for (let p = 0; p < k; p++) s += A[ao + i * ai + p * ap] * B[bo + p * bp + j * bj];
      C[co + i * ci + j] = add ? C[co + i * ci + j] + s : s;
    }
  }
}

// The same in WebAssembly (product.wat; two float64 at a time, tiles of 4 x 4): four times as fast. Each sum
// runs in the same order, so the bits are the same. Where there is no WebAssembly SIMD, the plain one does it all.
const WASM =
  "AGFzbQEAAAABEAFgDH9/f39/f39/f39/fwACDQEBZQZtZW1vcnkCAAEDAgEABwsBB3Byb2R1Y3QAAAr4BQH1BQIMfwt7IANBAXQhEiASIANqIR" +
  "MgB0EBdCEUIBQgB2ohFSABQQF0IRYgFiABaiEXA0BBACENA0AgAiAMIANsaiEPIAUgDSAHbGohECAAIAwgAWwgDUEDdGpqIRH9DAAAAAAAAAAA" +
  "AAAAAAAAAAAhG/0MAAAAAAAAAAAAAAAAAAAAACEc/QwAAAAAAAAAAAAAAAAAAAAAIR39DAAAAAAAAAAAAAAAAAAAAAAhHv0MAAAAAAAAAAAAAA" +
  "AAAAAAACEf/QwAAAAAAAAAAAAAAAAAAAAAISD9DAAAAAAAAAAAAAAAAAAAAAAhIf0MAAAAAAAAAAAAAAAAAAAAACEiIAkhDgNAIBAgB2ogEP1d" +
  "AwD9VwMAASEYIBAgFWogECAUav1dAwD9VwMAASEZIA/9CgMAIRogGyAaIBj98gH98AEhGyAcIBogGf3yAf3wASEcIA8gA2r9CgMAIRogHSAaIB" +
  "j98gH98AEhHSAeIBogGf3yAf3wASEeIA8gEmr9CgMAIRogHyAaIBj98gH98AEhHyAgIBogGf3yAf3wASEgIA8gE2r9CgMAIRogISAaIBj98gH9" +
  "8AEhISAiIBogGf3yAf3wASEiIA8gBGohDyAQIAZqIRAgDkEBayIODQALIAsEQCAbIBFBAGr9AAQA/fABIRsgHCARQRBq/QAEAP3wASEcIB0gES" +
  "ABakEAav0ABAD98AEhHSAeIBEgAWpBEGr9AAQA/fABIR4gHyARIBZqQQBq/QAEAP3wASEfICAgESAWakEQav0ABAD98AEhICAhIBEgF2pBAGr9" +
  "AAQA/fABISEgIiARIBdqQRBq/QAEAP3wASEiCyARQQBqIBv9CwQAIBFBEGogHP0LBAAgESABakEAaiAd/QsEACARIAFqQRBqIB79CwQAIBEgFm" +
  "pBAGogH/0LBAAgESAWakEQaiAg/QsEACARIBdqQQBqICH9CwQAIBEgF2pBEGogIv0LBAAgDUEEaiINIApJDQALIAxBBGoiDCAISQ0ACws=";
function arena(size) {                               // memory for `size` numbers, and a product that works there
  try {
    const memory = new WebAssembly.Memory({ initial: Math.ceil(size / 8192) });
    const fast = new WebAssembly.Instance(new WebAssembly.Module(Uint8Array.from(atob(WASM), c => c.charCodeAt(0))), { e: { memory } }).exports.product;
    return [memory.buffer, (C, co, ci, A, ao, ai, ap, B, bo, bp, bj, n, k, m, add) => {
      const n4 = n & ~3, m4 = m & ~3;
      if (n4 && m4 && k) fast(C.byteOffset + 8 * co, 8 * ci, A.byteOffset + 8 * ao, 8 * ai, 8 * ap, B.byteOffset + 8 * bo, 8 * bp, 8 * bj, n4, k, m4, add ? 1 : 0);
      if (m4 < m) product(C, co + m4, ci, A, ao, ai, ap, B, bo + m4 * bj, bp, bj, n4, k, m - m4, add);
      if (n4 < n) product(C, co + n4 * ci, ci, A, ao + n4 * ai, ai, ap, B, bo, bp, bj, n - n4, k, m, add);
    }];
  } catch { return [new ArrayBuffer(8 * size), product]; }
}

function slope(h, H) {                               // ALiBi's official slopes, for any number of heads
  let n = 1;
  while (2 * n <= H) n *= 2;
  return exp2(h < n ? -8 * (h + 1) / n : -4 * (2 * (h - n) + 1) / n);
}

// ---- the encodings --------------------------------------------------------------------------------------
// What each one may be told, and how it starts. A lane of the page is one of these.
const KINDS = {
  none: {}, sin: { base: 1000 }, learned: {}, rope: { base: 1000, share: 1 }, alibi: { slope: 1 },
  offset: {}, t5: { buckets: 16, far: 32 }, clipped: { clip: 8 }, shaw: { clip: 8 },
  hybrid: { base: 1000, slope: 1 }, bias: { formula: "-abs(r) / 2^h" }, angle: { formula: "1000^(-2*t/d)" },
};
const TRAINED = ["offset", "t5", "clipped"]; // TRAINED: a number for each row of a table

/** Where a number for the offset r stands in the table of a learned bias, or of Shaw's vectors, and how many there are. */
function rows({ kind, clip, buckets, far }, maxL, causal) {
  const side = causal ? buckets : buckets >> 1, exact = side >> 1, row = new Int32Array(2 * maxL - 1);
  const count = kind === "offset" ? 2 * maxL - 1 : kind === "t5" ? buckets : 2 * clip + 1;
  for (let r = 1 - maxL; r < maxL; r++) {
    if (kind === "offset") row[r + maxL - 1] = r + maxL - 1;
    else if (kind === "t5") {                        // Raffel et al. 2019, as released: exact ones, then wider and wider
      const n = causal ? Math.max(0, -r) : Math.abs(r);
      const wide = n < exact ? n : Math.min(side - 1, exact + Math.floor(log(n / exact) / log(far / exact) * (side - exact)));
      row[r + maxL - 1] = wide + (!causal && r > 0 ? side : 0);
    } else row[r + maxL - 1] = Math.max(-clip, Math.min(clip, r)) + clip;
  }
  return [row, count];
}

// ---- the model ------------------------------------------------------------------------------------------
// Pre-norm: x += attention(rms(x)), x += W relu(A rms(x) + a). A text has up to maxL tokens, a batch up to maxN.
// enc.bias(r, i, j, h) and enc.angle(t) are functions, where the kind is "bias" or "angle".
class Model {
  constructor({ V, d = 24, H, N, ff = 48, enc, causal, seed, maxL, maxN = 1024, wasm = true }) {
    const dh = d / H, { kind } = enc, width = 2 * maxL - 1;
    const [row, count] = TRAINED.includes(kind) || kind === "shaw" ? rows(enc, maxL, causal) : [];
    Object.assign(this, { V, d, H, N, ff, enc, causal, maxL, maxN, dh, row, count, t: 0, c1: 1, c2: 1 });
    this.scale = kind === "t5" ? 1 : 1 / Math.sqrt(dh);  // T5 has no factor
    const shapes = { E: [V * d, .5] };
    for (let l = 0; l < N; l++) {
      shapes["qkv" + l] = [d * 3 * d, 1 / Math.sqrt(d)]; shapes["o" + l] = [d * d, 1 / Math.sqrt(d)];
      shapes["a" + l] = [d * ff, 1 / Math.sqrt(d)]; shapes["ab" + l] = [ff, 0]; shapes["b" + l] = [ff * d, .5 / Math.sqrt(ff)];
    }
    shapes.U = [d * V, 1 / Math.sqrt(d)];
    // what only this encoding has is drawn last, so all models of one seed have the same weights otherwise
    if (kind === "learned") shapes.P = [maxL * d, .1];
    if (TRAINED.includes(kind)) shapes.T = [H * count, 0];
    if (kind === "shaw") for (const name of ["K", "W"]) shapes[name] = [count * dh, 1 / Math.sqrt(dh)];
    // all memory at once: parameters, gradients, Adam's two moments, and so many numbers for each token of a batch
    const layer = { x: d, h: d, r: 1, qkv: 3 * d, w: H * maxL, c: d, x1: d, h1: d, r1: 1, u: ff };
    const shared = { x: d, h: d, r: 1, logits: V, gl: V, gx: d, gh: d, gu: ff, gc: d, gqkv: 3 * d, gs: maxL };
    const sum = o => Object.values(o).reduce((a, b) => a + b), total = sum(Object.values(shapes).map(([size]) => size));
    const [buffer, fast] = arena(4 * total + maxN * (N * sum(layer) + sum(shared)) + (kind === "shaw" ? 2 * maxL * count : 0));
    let used = 0;
    const take = size => { used += size; return new Float64Array(buffer, 8 * (used - size), size); };
    const takeAll = sizes => Object.fromEntries(Object.entries(sizes).map(([name, size]) => [name, take(maxN * size)]));
    this.product = wasm ? fast : product;
    for (const name of ["params", "grads", "mean", "square"]) this[name] = take(total);
    this.layers = Array.from({ length: N }, () => takeAll(layer));
    Object.assign(this, takeAll(shared));
    if (kind === "shaw") { this.met = take(maxL * count); this.summed = take(maxL * count); }
    this.p = {}; this.g = {}; this.at = {};          // p.E, g.E, ... are views of params and grads
    const r = rng(seed);
    let o = 0;
    for (const name in shapes) {
      const [size, std] = shapes[name];
      this.p[name] = this.params.subarray(o, o + size); this.g[name] = this.grads.subarray(o, o + size); this.at[name] = [o, o + size];
      if (std) for (let i = 0; i < size; i++) this.params[o + i] = gauss(r) * std;
      o += size;
    }
    // what is known of positions beforehand, in tables
    const theta = (width, share = 1) => Array.from({ length: width / 2 }, (_, t) => (t < Math.floor(share * width / 2) ? exp(-2 * t / width * log(enc.base)) : 0));
    const angles = theta => {                        // [maxL, width / 2, (sin, cos)]
      const table = new Float64Array(maxL * 2 * theta.length);
      for (let i = 0; i < maxL; i++) theta.forEach((each, t) => table.set(sincos(i * each), (i * theta.length + t) * 2));
      return table;
    };
    this.theta = kind === "rope" ? theta(dh, enc.share) : kind === "angle" ? theta(dh).map((_, t) => enc.angle(t)) : undefined;
    this.turns = this.theta && angles(this.theta);
    this.added = kind === "sin" || kind === "hybrid" ? angles(theta(d)) : this.p.P;
    // A number for head h, query i, key j stands at h bh + i bi + j + b0: for each offset, or, of a formula, each pair.
    Object.assign(this, kind === "bias" ? { bh: maxL * maxL, bi: maxL, b0: 0 } : { bh: width, bi: -1, b0: maxL - 1 });
    this.bias = new Float64Array(H * this.bh); this.gbias = new Float64Array(this.p.T ? H * width : 0);
    for (let h = 0; h < H; h++) {
      if (kind === "bias") for (let i = 0; i < maxL; i++) for (let j = 0; j < maxL; j++) this.bias[h * this.bh + i * maxL + j] = enc.bias(j - i, i, j, h + 1);
      if (kind === "alibi" || kind === "hybrid") for (let k = 1 - maxL; k < maxL; k++) this.bias[h * width + maxL - 1 + k] = -enc.slope * slope(h, H) * Math.abs(k);
    }
  }

  // X[n, k] W[k, m], and what its backward needs: the gradients of W (set) and of X (set, not added)
  linear(Y, X, W, k, m, add) { this.product(Y, 0, m, X, 0, k, 1, W, 0, m, 1, this.n, k, m, add); }
  linearBack(GX, GW, GY, X, W, k, m) {
    this.product(GW, 0, m, X, 0, 1, k, GY, 0, m, 1, k, this.n, m, false);
    this.product(GX, 0, k, GY, 0, m, 1, W, 0, 1, m, this.n, m, k, false);
  }
  norm(h, r, x) {                                    // h = x / rms(x)
    const { n, d } = this;
    for (let i = 0, o = 0; i < n; i++, o += d) {
      let s = 0;
      for (let j = 0; j < d; j++) s += x[o + j] * x[o + j];
      const k = r[i] = 1 / Math.sqrt(s / d + 1e-5);
      for (let j = 0; j < d; j++) h[o + j] = x[o + j] * k;
    }
  }
  normBack(gx, gh, h, r) {                           // gx += r (gh - h mean(gh h))
    const { n, d } = this;
    for (let i = 0, o = 0; i < n; i++, o += d) {
      let s = 0;
      for (let j = 0; j < d; j++) s += gh[o + j] * h[o + j];
      s /= d;
      for (let j = 0; j < d; j++) gx[o + j] += r[i] * (gh[o + j] - h[o + j] * s);
    }
  }
  turn(x, sign) {                                    // RoPE: turn the pairs of queries and keys, in place
    const { B, L, d, dh, turns } = this;
    for (let row = 0; row < B * L; row++) {
      for (let c = 0, at = (row % L) * dh; c < 2 * d; c += 2) {   // the 2 H heads of q and k lie side by side
        const t = at + c % dh, s = sign * turns[t], k = turns[t + 1], o = row * 3 * d + c, a = x[o], b = x[o + 1];
        x[o] = a * k - b * s; x[o + 1] = a * s + b * k;
      }
    }
  }
  gather(into, from, start) {                        // Shaw: from[i, j] of all keys j with the same vector, summed
    const { L, row, count, maxL, causal } = this;
    for (let i = 0, o = start; i < L; i++, o += L) {
      for (let k = 0; k < count; k++) into[i * count + k] = 0;
      for (let j = 0; j < (causal ? i + 1 : L); j++) into[i * count + row[maxL - 1 + j - i]] += from[o + j];
    }
  }
  attention({ qkv, w, c }) {
    const { B, L, H, d, dh, bias, bh, bi, b0, causal, scale, p, row, count, maxL, met, summed } = this, D = 3 * d;
    for (let b = 0; b < B; b++) for (let h = 0; h < H; h++) {
      const q = b * L * D + h * dh, k = q + d, v = k + d, o = (b * H + h) * L * L, out = b * L * d + h * dh;
      this.product(w, o, L, qkv, q, D, 1, qkv, k, 1, D, L, dh, L, false);
      if (p.K) this.product(met, 0, count, qkv, q, D, 1, p.K, 0, 1, dh, L, dh, count, false);
      for (let i = 0; i < L; i++) {
        const at = o + i * L, end = causal ? i + 1 : L, where = h * bh + i * bi + b0;
        if (p.K) for (let j = 0; j < end; j++) w[at + j] += met[i * count + row[maxL - 1 + j - i]];
        let top = -Infinity, sum = 0;
        for (let j = 0; j < end; j++) { const s = w[at + j] = w[at + j] * scale + bias[where + j]; if (s > top) top = s; }
        for (let j = 0; j < end; j++) sum += w[at + j] = exp(w[at + j] - top);
        const one = 1 / sum;
        for (let j = 0; j < end; j++) w[at + j] *= one;
        for (let j = end; j < L; j++) w[at + j] = 0;
      }
      this.product(c, out, d, w, o, L, 1, qkv, v, D, 1, L, L, dh, false);
      if (p.W) { this.gather(summed, w, o); this.product(c, out, d, summed, 0, count, 1, p.W, 0, dh, 1, L, count, dh, true); }
    }
  }
  attentionBack({ qkv, w }) {                        // from gc to gqkv
    const { B, L, H, d, dh, bh, bi, b0, causal, scale, gc, gqkv, gs, p, g, gbias, row, count, maxL, met, summed } = this, D = 3 * d;
    for (let b = 0; b < B; b++) for (let h = 0; h < H; h++) {
      const q = b * L * D + h * dh, k = q + d, v = k + d, o = (b * H + h) * L * L, cg = b * L * d + h * dh;
      this.product(gs, 0, L, gc, cg, d, 1, qkv, v, 1, D, L, dh, L, false);
      if (p.W) {
        this.product(met, 0, count, gc, cg, d, 1, p.W, 0, 1, dh, L, dh, count, false);
        for (let i = 0; i < L; i++) for (let j = 0; j < (causal ? i + 1 : L); j++) gs[i * L + j] += met[i * count + row[maxL - 1 + j - i]];
        this.gather(summed, w, o);
        this.product(g.W, 0, dh, summed, 0, 1, count, gc, cg, d, 1, count, L, dh, true);
      }
      this.product(gqkv, v, D, w, o, 1, L, gc, cg, d, 1, L, L, dh, false);
      for (let i = 0; i < L; i++) {
        const at = i * L, end = causal ? i + 1 : L, where = h * bh + i * bi + b0;
        let dot = 0;
        for (let j = 0; j < end; j++) dot += w[o + at + j] * gs[at + j];
        for (let j = 0; j < end; j++) gs[at + j] = w[o + at + j] * (gs[at + j] - dot);
        if (p.T) for (let j = 0; j < end; j++) gbias[where + j] += gs[at + j];
        for (let j = 0; j < end; j++) gs[at + j] *= scale;
        for (let j = end; j < L; j++) gs[at + j] = 0;
      }
      this.product(gqkv, q, D, gs, 0, L, 1, qkv, k, D, 1, L, L, dh, false);
      this.product(gqkv, k, D, gs, 0, 1, L, qkv, q, D, 1, L, L, dh, false);
      if (p.K) {
        this.gather(met, gs, 0);
        this.product(gqkv, q, D, met, 0, count, 1, p.K, 0, dh, 1, L, count, dh, true);
        this.product(g.K, 0, dh, met, 0, 1, count, qkv, q, D, 1, count, L, dh, true);
      }
    }
  }

  forward(tokens, B, L) {                            // fills this.logits [B L, V] and this.layers[l].w [B, H, L, L]
    if (L > this.maxL || B * L > this.maxN) throw new RangeError(`${B} x ${L} tokens: this model was built for maxL=${this.maxL}, maxN=${this.maxN}`);
    Object.assign(this, { tokens, B, L, n: B * L });
    const { d, H, N, ff, n, p, layers, added, row, count, bh } = this;
    if (p.T) for (let h = 0; h < H; h++) for (let x = 0; x < bh; x++) this.bias[h * bh + x] = p.T[h * count + row[x]];
    for (let i = 0, x = layers[0].x; i < n; i++) {
      const e = tokens[i] * d, at = (i % L) * d;
      for (let j = 0; j < d; j++) x[i * d + j] = added ? p.E[e + j] + added[at + j] : p.E[e + j];
    }
    for (let l = 0; l < N; l++) {
      const y = layers[l], out = l + 1 < N ? layers[l + 1].x : this.x;
      this.norm(y.h, y.r, y.x);
      this.linear(y.qkv, y.h, p["qkv" + l], d, 3 * d, false);
      if (this.turns) this.turn(y.qkv, 1);
      this.attention(y);
      y.x1.set(y.x); this.linear(y.x1, y.c, p["o" + l], d, d, true);
      this.norm(y.h1, y.r1, y.x1);
      for (let i = 0; i < n; i++) y.u.set(p["ab" + l], i * ff);
      this.linear(y.u, y.h1, p["a" + l], d, ff, true);
      for (let i = 0; i < n * ff; i++) if (!(y.u[i] > 0)) y.u[i] = 0;
      out.set(y.x1); this.linear(out, y.u, p["b" + l], ff, d, true);
    }
    this.norm(this.h, this.r, this.x);
    this.linear(this.logits, this.h, p.U, d, this.V, false);
    return this;
  }
  loss(target) {                                     // cross-entropy where target >= 0; leaves its gradient in this.gl
    const { V, n, logits, gl } = this;
    let loss = 0, count = 0, right = 0;
    for (let i = 0; i < n; i++) if (target[i] >= 0) count++;
    for (let i = 0, o = 0; i < n; i++, o += V) {
      if (target[i] < 0) { for (let j = 0; j < V; j++) gl[o + j] = 0; continue; }
      let best = 0, sum = 0;
      for (let j = 1; j < V; j++) if (logits[o + j] > logits[o + best]) best = j;
      for (let j = 0; j < V; j++) sum += gl[o + j] = exp(logits[o + j] - logits[o + best]);
      for (let j = 0; j < V; j++) gl[o + j] /= sum * count;
      gl[o + target[i]] -= 1 / count;
      loss += log(sum) + logits[o + best] - logits[o + target[i]];
      if (best === target[i]) right++;
    }
    return { loss: loss / count, right, count };
  }
  backward() {                                       // of the last forward and loss: fills this.grads
    const { d, V, H, N, ff, n, L, p, g, layers, tokens, gx, gh, gu, gc, gqkv, gbias, row, count, bh } = this;
    this.linearBack(gh, g.U, this.gl, this.h, p.U, d, V);
    gx.fill(0); this.normBack(gx, gh, this.h, this.r);
    gbias.fill(0);
    for (const name of ["T", "K", "W"]) g[name]?.fill(0);
    for (let l = N - 1; l >= 0; l--) {
      const y = layers[l], ab = g["ab" + l].fill(0);
      this.linearBack(gu, g["b" + l], gx, y.u, p["b" + l], ff, d);
      for (let i = 0; i < n; i++) for (let j = 0, o = i * ff; j < ff; j++) if (y.u[o + j] > 0) ab[j] += gu[o + j]; else gu[o + j] = 0;
      this.linearBack(gh, g["a" + l], gu, y.h1, p["a" + l], d, ff);
      this.normBack(gx, gh, y.h1, y.r1);
      this.linearBack(gc, g["o" + l], gx, y.c, p["o" + l], d, d);
      this.attentionBack(y);
      if (this.turns) this.turn(gqkv, -1);
      this.linearBack(gh, g["qkv" + l], gqkv, y.h, p["qkv" + l], d, 3 * d);
      this.normBack(gx, gh, y.h, y.r);
    }
    if (g.T) for (let h = 0; h < H; h++) for (let x = 0; x < bh; x++) g.T[h * count + row[x]] += gbias[h * bh + x];
    g.E.fill(0); g.P?.fill(0);
    for (let i = 0; i < n; i++) {
      const e = tokens[i] * d, at = (i % L) * d;
      for (let j = 0; j < d; j++) g.E[e + j] += gx[i * d + j];
      if (g.P) for (let j = 0; j < d; j++) g.P[at + j] += gx[i * d + j];
    }
  }
  step(lr, fast = 10) {                              // Adam; a table of biases learns `fast` times as fast
    const { params: p, grads: g, mean: m, square: v } = this, b1 = .9, b2 = .98;
    this.t++; this.c1 *= b1; this.c2 *= b2;
    const root = Math.sqrt(1 - this.c2), eps = 1e-8 * root, [from, to] = this.at.T || [0, 0];
    for (let i = 0, rate = lr * root / (1 - this.c1); i < p.length; i++) {
      m[i] = b1 * m[i] + (1 - b1) * g[i];
      v[i] = b2 * v[i] + (1 - b2) * g[i] * g[i];
      p[i] -= (i >= from && i < to ? fast * rate : rate) * m[i] / (Math.sqrt(v[i]) + eps);
    }
  }

  /** How the score of query i and key j in the first text of the last forward comes about. Its parts add up to it:
   * tokens and places, where these can be told apart (the first layer), the pairs of channels of a rotation, a bias. */
  explain(l, h, i, j) {
    const { d, dh, L, p, scale, added, layers, row, maxL } = this, { qkv, w, r } = layers[l], D = 3 * d;
    const dot = (a, b) => { let s = 0; for (let c = 0; c < dh; c++) s += a[c] * b[c]; return s * scale; };
    const part = (at, from) => Array.from(qkv.subarray(at * D + from + h * dh, at * D + from + h * dh + dh));
    const q = part(i, 0), k = part(j, d), parts = {};
    if (added && l === 0) {                          // q = W r (E + P): its two parts, one by one
      const made = (at, from, add) => Array.from({ length: dh }, (_, c) => {
        let s = 0;
        for (let e = 0; e < d; e++) s += r[at] * (add ? added[at * d + e] : p.E[this.tokens[at] * d + e]) * p.qkv0[e * D + from + h * dh + c];
        return s;
      });
      for (const a of "tp") for (const b of "tp") parts[a + b] = dot(made(i, 0, a === "p"), made(j, d, b === "p"));
    } else parts.content = dot(q, k);
    if (p.K) { parts.vectors = 0; for (let c = 0; c < dh; c++) parts.vectors += scale * q[c] * p.K[row[maxL - 1 + j - i] * dh + c]; }
    if (p.T || ["alibi", "hybrid", "bias"].includes(this.enc.kind)) parts.bias = this.bias[h * this.bh + i * this.bi + j + this.b0];
    const pairs = this.theta?.map((theta, t) => ({ theta, score: scale * (q[2 * t] * k[2 * t] + q[2 * t + 1] * k[2 * t + 1]) }));
    return { l, h, i, j, parts, pairs, weight: w[h * L * L + i * L + j], score: Object.values(parts).reduce((a, b) => a + b) };
  }
}
