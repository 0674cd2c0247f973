// Every place of an explorer in a page comes to life; without this script its picture stays.
const asked = new URLSearchParams(location.search), wanted = asked.get("live");
const counts = {}, own = document.currentScript?.src || document.baseURI;

/** Texts of an address as values: only what the table of parameters allows. */
function given(table) {
  const found = {};
  for (const [name, { values }] of Object.entries(table.parameters)) {
    const text = asked.get(name);
    if (text === null) continue;
    if (!values) found[name] = Number.isFinite(+text) ? +text : undefined;
    else found[name] = values.find(value => String(value) === text);
  }
  return found;
}
/** What an explorer has in bulk stands in a file beside this one. */
function fetched(name, then) {
  const file = document.createElement("script");
  file.src = new URL(`live-${name}.js`, own);
  file.onload = () => {
    Object.assign(data[name], window.liveBulk[name]);
    then();
  };
  document.head.append(file);
}
function start() {
  for (const place of document.querySelectorAll("[data-live]")) {
    const name = place.dataset.live, picture = [...place.childNodes];
    const number = counts[name] = (counts[name] ?? 0) + 1, id = number > 1 ? `${name}-${number}` : name;
    if (place.live || !explorers[name]) continue;
    if (data[name].elsewhere && !window.liveBulk?.[name]) fetched(name, () => come(place, name, id, picture));
    else come(place, name, id, picture);
  }
}
function come(place, name, id, picture) {
  try {
    if (!CSS.supports("color", "light-dark(#000, #fff)")) throw new Error("this browser is too old");
    const params = { ...JSON.parse(place.dataset.params || "{}"), ...(wanted === id ? given(data[name]) : {}) };
    place.replaceChildren();
    place.live = kit.live(place, explorers[name], {
      data: data[name], params, small: place.dataset.small || "small" in place.dataset,
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
    place.classList.remove("live", "lv-small", "lv-toy");
    console.warn(problem);
  }
}
if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
else start();
