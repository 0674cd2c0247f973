// Brings every explorer on a page to life; without this script its picture stays.
const asked = new URLSearchParams(location.search), wanted = asked.get("live");
const counts = {}, files = {}, own = document.currentScript?.src || document.baseURI;

/** The values given in the page's address: only what the table of parameters allows. */
function given(table) {
  const found = {};
  for (const [name, { values, most }] of Object.entries(table.parameters)) {
    const text = asked.get(name);
    if (text === null) continue;
    if (most) found[name] = text.slice(0, most);
    else if (!values) found[name] = Number.isFinite(+text) ? +text : undefined;
    else found[name] = values.find(value => String(value) === text);
  }
  return found;
}
/** Call `then` with an explorer and its data; its file, beside this one, is loaded unless it has been. */
function known(name, then) {
  const there = () => {
    const one = window.liveExplorers[name];
    if (!one.made) kit.learn(one.texts);
    then(one.made ??= one.make(kit), one.data);
  };
  if (window.liveExplorers?.[name]) { there(); return; }
  if (!files[name]) {
    files[name] = document.createElement("script");
    files[name].src = new URL(`live-${name}.js`, own);
    document.head.append(files[name]);
  }
  files[name].addEventListener("load", there);
}
function start() {
  for (const place of document.querySelectorAll("[data-live]")) {
    const name = place.dataset.live, picture = [...place.childNodes];
    const number = counts[name] = (counts[name] ?? 0) + 1, id = number > 1 ? `${name}-${number}` : name;
    if (!place.live) known(name, (explorer, data) => come(place, explorer, data, id, picture));
  }
}
function come(place, explorer, data, id, picture) {
  try {
    if (!CSS.supports("color", "light-dark(#000, #fff)")) throw new Error("this browser is too old");
    const params = { ...JSON.parse(place.dataset.params || "{}"), ...(wanted === id ? given(data) : {}) };
    place.replaceChildren();
    place.live = kit.live(place, explorer, {
      data, params, small: place.dataset.small || "small" in place.dataset,
      link: now => {
        const address = new URL(location.href);
        address.search = new URLSearchParams({ live: id, ...now });
        address.hash = "";
        return address.href;
      },
    });
    if (wanted === id) place.scrollIntoView({ block: "center" });
  } catch (problem) { // the picture stays
    place.replaceChildren(...picture);
    place.dataset.still = "";
    place.classList.remove("live", "lv-small", "lv-toy");
    console.warn(problem);
  }
}
if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
else start();
