// A labelled native control over a list of values, a slider or a menu; a slider may play by itself.

const SPEEDS = [1, 2, 5, 10, 20]; // steps per second

function element(tag, className, attributes = {}) {
  const node = Object.assign(document.createElement(tag), { className });
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

export default {
  render({ model, el }) {
    el.classList.add("order-control");
    const menu = model.get("menu"), label = element("label", "order-label");
    const input = menu ? element("select", "order-menu")
      : element("input", "order-range", { type: "range", min: 0, step: 1 });
    const value = element("output", "order-value");
    label.append(model.get("label"), input);
    el.append(label);
    if (menu) model.get("texts").forEach((text, i) => input.add(new Option(text, i)));
    else el.append(value);

    function show() {
      const index = model.get("index"), text = model.get("texts")[index] ?? String(index);
      if (!menu) input.max = model.get("count") - 1;
      input.value = index;
      if (!menu) input.setAttribute("aria-valuetext", text);
      value.textContent = text;
    }

    function move(index) {
      model.set("index", index);
      model.save_changes(); // the widget protocol itself skips steps that the kernel can't follow
    }

    let clock = 0;
    const play = element("button", "order-button", { type: "button" });
    const speed = element("select", "order-menu", { "aria-label": "speed, steps per second" });

    function run(on) {
      clearInterval(clock);
      const step = () => move((model.get("index") + 1) % model.get("count"));
      clock = on ? setInterval(step, 1000 / speed.value) : 0;
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
    input.addEventListener("input", () => move(+input.value));
    // Jupyter would take arrow keys, Space and Enter for its shortcuts. JupyterLab sees a key after
    // us; Notebook before us, but leaves a marked element alone.
    for (const node of [input, play, speed]) node.dataset.lmSuppressShortcuts = "true";
    el.addEventListener("keydown", event => {
      if (!["Tab", "Escape"].includes(event.key)) event.stopPropagation();
    });

    const names = ["change:index", "change:count"];
    names.forEach(each => model.on(each, show));
    show();
    return () => {
      clearInterval(clock);
      names.forEach(each => model.off(each, show));
    };
  },
};
