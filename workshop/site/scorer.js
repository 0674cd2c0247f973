// Lessons first, then what explains, then what lists: Sphinx adds these points to its own.
// Where one word is asked for that names a method, the lesson on it comes first, then the method's page.
const POINTS = [[/^notebooks\/\d/, 24], [/^docs\/glossary/, 16], [/^methods\//, 14],
  [/^notebooks\//, 12], [/^exercises\//, 8], [/^docs\/instructor/, -8], [/^api\//, -20]];
const meant = () => METHODS[(new URLSearchParams(location.search).get("q") ?? "").trim().toLowerCase()] ?? [];
// What is written without spaces is cut into pairs of characters, as the index is: `Pairs` in editions.py.
// Asked for are those that the best page has: the one with most of them, where a rare one counts for more.
const places = pair => [Search._index?.terms, Search._index?.titleterms]
  .flatMap(one => one && Object.hasOwn(one, pair) ? one[pair] : []);
const pairs = run => {
  const all = [...run].slice(1).map((next, n) => run[n] + next), points = new Map();
  for (const there of all.map(places)) {
    const rare = Math.log(1 + Search._index?.docnames.length / there.length);
    for (const page of there) points.set(page, rare + (points.get(page) ?? 0));
  }
  const best = [...points].reduce((one, other) => other[1] > one[1] ? other : one, [-1, 0])[0];
  const kept = all.filter(pair => places(pair).includes(best));
  return (kept.length ? kept : all.length ? all : [run]).join(" ");
};
var splitQuery = query => query.replace(/[\u3040-\u30ff\u3400-\u9fff]+/g, run => ` ${pairs(run)} `)
  .split(/[^\p{Letter}\p{Number}_\p{Emoji_Presentation}]+/gu).filter(Boolean);
var Scorer = {
  score: ([docname, , , , score]) => score + (POINTS.find(([place]) => place.test(docname))?.[1] ?? 0)
    + [0, 60, 90][meant().toReversed().indexOf(docname) + 1],
  objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};
