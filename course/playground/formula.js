// ---- formulas that a reader types -----------------------------------------------------------------------
// jsep reads them; what it has read is turned into functions here, and nothing of it is ever run as JavaScript.
for (const each of Object.keys(jsep.binary_ops)) jsep.removeBinaryOp(each);
for (const [rank, ...signs] of [[1, "||"], [2, "&&"], [6, "==", "!="], [7, "<", ">", "<=", ">="], [9, "+", "-"], [10, "*", "/", "%"]]) signs.forEach(sign => jsep.addBinaryOp(sign, rank));
jsep.addBinaryOp("^", 11, true);
// -r^2 is -(r^2), as in mathematics: a minus waits for the powers behind it.
function raised(parser) {
  const left = parser.gobbleToken() || parser.throwError("");
  parser.gobbleSpaces();
  if (parser.expr[parser.index] !== "^") return left;
  parser.index++;
  return { type: "BinaryExpression", operator: "^", left, right: raised(parser) };
}
jsep.hooks.add("gobble-token", function (env) {
  const operator = this.expr[this.index];
  if (operator !== "-" && operator !== "+") return;
  this.index++;
  env.node = { type: "UnaryExpression", operator, argument: raised(this) };
});
function power(a, b) {                               // whole powers are products; else e^(b ln a)
  if (b === Math.floor(b) && Math.abs(b) <= 1024) {
    let so = 1;
    for (let n = Math.abs(b), times = a; n; n = Math.floor(n / 2), times *= times) if (n % 2) so *= times;
    return b < 0 ? 1 / so : so;
  }
  return a > 0 ? exp(b * log(a)) : a === 0 && b > 0 ? 0 : NaN;
}
const SAYS = {
  abs: Math.abs, floor: Math.floor, ceil: Math.ceil, round: x => Math.floor(x + .5), sqrt: Math.sqrt, min: Math.min, max: Math.max,
  sign: Math.sign, exp, log: x => (x > 0 && x < Infinity ? log(x) : NaN), sin: x => sincos(x)[0], cos: x => sincos(x)[1], log2: x => SAYS.log(x) / .6931471805599453,
};
const TWO = {
  "+": (a, b) => a + b, "-": (a, b) => a - b, "*": (a, b) => a * b, "/": (a, b) => a / b, "%": (a, b) => a - b * Math.floor(a / b), "^": power,
  "<": (a, b) => +(a < b), ">": (a, b) => +(a > b), "<=": (a, b) => +(a <= b), ">=": (a, b) => +(a >= b), "==": (a, b) => +(a === b), "!=": (a, b) => +(a !== b),
  "&&": (a, b) => (a && b ? 1 : 0), "||": (a, b) => (a || b ? 1 : 0),
};
const own = (object, name) => Object.prototype.hasOwnProperty.call(object, name);
class FormulaError extends Error { constructor(at, why, name = "") { super(why); Object.assign(this, { at, why, name }); } }
/** The function of `names` that a text says. FormulaError: `at` is the sign where it stops making sense, `why` one of
 * "sign", "name", "function". */
function formula(text, names) {
  const clean = text.replace(/[\u2212\u2013]/g, "-").replace(/[\u00d7\u00b7\u22c5]/g, "*").replace(/\*\*/g, "^ ");
  const known = { pi: 3.141592653589793, π: 3.141592653589793, e: 2.718281828459045 };
  const where = name => Math.max(0, clean.search(new RegExp(`\\b${name.replace(/\W/g, "\\$&")}\\b`)));
  let tree;
  try { tree = jsep(clean); } catch (problem) { throw new FormulaError(Math.min(problem.index ?? 0, text.length), "sign"); }
  const make = node => {
    if (node.type === "Literal" && typeof node.value === "number") return () => node.value;
    if (node.type === "Identifier") {
      const i = names.indexOf(node.name);
      if (i >= 0) return values => values[i];
      if (own(known, node.name)) return () => known[node.name];
      throw new FormulaError(where(node.name), "name", node.name);
    }
    if (node.type === "UnaryExpression" && "-+!".includes(node.operator)) {
      const f = make(node.argument);
      return { "-": v => -f(v), "+": v => f(v), "!": v => +!f(v) }[node.operator];
    }
    if (node.type === "BinaryExpression" && own(TWO, node.operator)) {
      const f = TWO[node.operator], a = make(node.left), b = make(node.right);
      return values => f(a(values), b(values));
    }
    if (node.type === "ConditionalExpression") {
      const [a, b, c] = [node.test, node.consequent, node.alternate].map(make);
      return values => (a(values) ? b(values) : c(values));
    }
    if (node.type === "CallExpression" && node.callee.type === "Identifier") {
      const { name } = node.callee;
      if (!own(SAYS, name) || !node.arguments.length || node.arguments.length > 1 && !["min", "max"].includes(name)) throw new FormulaError(where(name), "function", name);
      const f = SAYS[name], parts = node.arguments.map(make);
      return values => f(...parts.map(part => part(values)));
    }
    throw new FormulaError(0, "sign");
  };
  const f = make(tree);
  return (...values) => f(values);
}
/** What the engine takes of a lane whose reader wrote a formula. FormulaError also where it gives no number ("value"):
 * `name` then says where. Angles may not be so large that nothing is left of them. */
function withFormula(enc, { H, maxL, d = 24 }) {
  if (enc.kind === "bias") {
    const f = formula(enc.formula, ["r", "i", "j", "h", "H"]), bias = (r, i, j, h) => f(r, i, j, h, H);
    for (let h = 1; h <= H; h++) for (let i = 0; i < maxL; i++) for (let j = 0; j < maxL; j++) {
      if (!(Math.abs(bias(j - i, i, j, h)) < 1e6)) throw new FormulaError(0, "value", `r = ${j - i}, i = ${i}, j = ${j}, h = ${h}`);
    }
    return { ...enc, bias };
  }
  if (enc.kind === "angle") {
    const f = formula(enc.formula, ["t", "d"]), angle = t => f(t, d / H);
    for (let t = 0; t < d / H / 2; t++) if (!(Math.abs(angle(t)) < 1000)) throw new FormulaError(0, "value", `t = ${t}`);
    return { ...enc, angle };
  }
  return enc;
}
