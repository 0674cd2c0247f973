// A labelled native range over a list of values, with a clock of its own where it can play.

const SPEEDS = [1, 2, 5, 10, 20]; // steps per second

function element(tag, className, attributes = {}) {
  const node = Object.assign(document.createElement(tag), { className });
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

export default {
  render({ model, el }) {
    el.classList.add("order-slider");
    const label = element("label", "order-label"), name = element("span", "order-name");
    const range = element("input", "order-range", { type: "range", min: 0, step: 1 });
    const value = element("output", "order-value");
    name.textContent = model.get("label");
    label.append(name, range);
    el.append(label, value);

    let clock = 0;
    const play = element("button", "order-button", { type: "button" });
    const speed = element("select", "order-speed", { "aria-label": "speed, steps per second" });

    function show() {
      const index = model.get("index"), text = model.get("texts")[index] ?? String(index);
      range.max = model.get("count") - 1;
      range.value = index;
      range.setAttribute("aria-valuetext", text);
      value.textContent = text;
    }

    function move(index) {
      model.set("index", index);
      model.save_changes(); // the widget protocol itself skips steps that the kernel can't follow
    }

    function run(on) {
      clearInterval(clock);
      clock = on ? setInterval(() => move((model.get("index") + 1) % model.get("count")), 1000 / speed.value) : 0;
      play.textContent = on ? "❚❚ Pause" : "▶ Play";
      play.setAttribute("aria-label", `${on ? "Pause" : "Play"} ${model.get("label")}`);
    }

    if (model.get("play")) {
      for (const each of SPEEDS) speed.add(new Option(`${each} per second`, each, each === 5, each === 5));
      play.addEventListener("click", () => run(!clock));
      speed.addEventListener("change", () => run(!!clock));
      run(false);
      el.append(play, speed);
    }
    range.addEventListener("input", () => move(+range.value));
    // JupyterLab would take arrow keys, Space and Enter for its own shortcuts.
    el.addEventListener("keydown", event => { if (event.key !== "Tab" && event.key !== "Escape") event.stopPropagation(); });

    const names = ["change:index", "change:count", "change:texts"];
    names.forEach(each => model.on(each, show));
    show();
    return () => {
      clearInterval(clock);
      names.forEach(each => model.off(each, show));
    };
  },
};
