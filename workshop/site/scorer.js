// Lessons first, then what explains, then what lists: Sphinx adds these points to its own.
// Where one word is asked for that names a method, the lesson on it comes first, then the method's page.
const POINTS = [[/^notebooks\/\d/, 24], [/^docs\/glossary/, 16], [/^methods\//, 14],
  [/^notebooks\//, 12], [/^exercises\//, 8], [/^docs\/instructor/, -8], [/^api\//, -20]];
const meant = () => METHODS[(new URLSearchParams(location.search).get("q") ?? "").trim().toLowerCase()] ?? [];
// Where words are not told apart by spaces, the longest that the index knows are looked for, from the left.
const HAN = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]+/gu;
const known = word => [Search._index?.terms, Search._index?.titleterms].some(one => one && Object.hasOwn(one, word));
const cut = text => {
  const found = [];
  for (let at = 0, end; at < text.length; at = end) {
    for (end = text.length; end > at + 1 && !known(text.slice(at, end)); end--);
    if (end > at + 1) found.push(text.slice(at, end));
    else end = at + 1;
  }
  return found.length ? found : [text];
};
var splitQuery = query => query.replace(HAN, text => ` ${cut(text).join(" ")} `)
  .split(/[^\p{Letter}\p{Number}_\p{Emoji_Presentation}]+/gu).filter(Boolean);
var Scorer = {
  score: ([docname, , , , score]) => score + (POINTS.find(([place]) => place.test(docname))?.[1] ?? 0)
    + [0, 60, 90][meant().toReversed().indexOf(docname) + 1],
  objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};
