// A curve that the reader draws: one handle for each x, dragged by the mouse or moved by arrow keys.

const NS = "http://www.w3.org/2000/svg", WIDTH = 640, HEIGHT = 300;
const AREA = { left: 70, top: 14, right: WIDTH - 20, bottom: HEIGHT - 52 };
const STEPS = { ArrowUp: 0.02, ArrowDown: -0.02, PageUp: 0.1, PageDown: -0.1, Home: -1, End: 1 };

function draw(parent, tag, attributes, text) {
  const node = document.createElementNS(NS, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
}

const clamp = (v, lo, hi) => Math.max(lo, Math.min(hi, v));
const text = v => String(+v.toPrecision(3)).replace("-", "−");

export default {
  render({ model, el }) {
    el.classList.add("order-sketch");
    const x = model.get("x"), [lo, hi] = model.get("ylim");
    const svg = draw(el, "svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "group",
      "aria-label": `Your sketch: ${model.get("ylabel")} over ${model.get("xlabel")}` });
    const toX = n => AREA.left + (AREA.right - AREA.left) * (n + 0.5) / x.length;
    const toY = v => AREA.bottom - (AREA.bottom - AREA.top) * (v - lo) / (hi - lo);

    const ink = draw(svg, "g", { class: "order-sketch-axes" });
    draw(ink, "path", { d: `M${AREA.left} ${AREA.top}V${AREA.bottom}H${AREA.right}` });
    for (let k = 0; k <= 4; k++) {
      const v = lo + (hi - lo) * k / 4;
      draw(ink, "path", { d: `M${AREA.left} ${toY(v)}H${AREA.right}`, class: "order-sketch-grid" });
      draw(ink, "text", { x: AREA.left - 8, y: toY(v) + 5, "text-anchor": "end" }, text(v));
    }
    x.forEach((v, n) => draw(ink, "text", { x: toX(n), y: AREA.bottom + 20, "text-anchor": "middle" }, v));
    draw(ink, "text", { x: (AREA.left + AREA.right) / 2, y: HEIGHT - 8, "text-anchor": "middle" },
      model.get("xlabel"));
    draw(ink, "text", { transform: `translate(16 ${(AREA.top + AREA.bottom) / 2}) rotate(-90)`,
      "text-anchor": "middle" }, model.get("ylabel"));

    const line = draw(svg, "polyline", { class: "order-sketch-line" });
    const handles = x.map((v, n) => {
      const handle = draw(svg, "circle", { cx: toX(n), r: 9, tabindex: 0, role: "slider",
        "aria-label": `${model.get("ylabel")} at ${v}`, "aria-orientation": "vertical",
        "aria-valuemin": lo, "aria-valuemax": hi, class: "order-sketch-handle" });
      handle.dataset.lmSuppressShortcuts = "true";
      handle.addEventListener("keydown", event => {
        const step = STEPS[event.key];
        if (step === undefined) return;
        event.preventDefault();
        event.stopPropagation(); // or JupyterLab moves to another cell
        set(n, model.get("values")[n] + step * (hi - lo));
      });
      return handle;
    });

    function set(n, value) {
      if (model.get("committed")) return;
      const values = [...model.get("values")];
      values[n] = +clamp(value, lo, hi).toPrecision(6);
      model.set("values", values);
      model.save_changes();
    }

    function show() {
      const values = model.get("values"), committed = model.get("committed");
      el.classList.toggle("order-sketch-committed", committed);
      line.setAttribute("points", values.map((v, n) => `${toX(n)},${toY(v)}`).join(" "));
      handles.forEach((handle, n) => {
        handle.setAttribute("cy", toY(values[n]));
        handle.setAttribute("aria-valuenow", values[n]);
        handle.setAttribute("aria-valuetext", text(values[n]));
        handle.setAttribute("aria-disabled", committed);
      });
    }

    // One stroke of the mouse draws all points that it passes.
    let drawing = false;
    function stroke(event) {
      const box = svg.getBoundingClientRect(), scale = WIDTH / box.width;
      const px = (event.clientX - box.left) * scale, py = (event.clientY - box.top) * scale;
      const n = Math.floor((px - AREA.left) / (AREA.right - AREA.left) * x.length);
      if (n >= 0 && n < x.length)
        set(n, lo + (hi - lo) * (AREA.bottom - py) / (AREA.bottom - AREA.top));
    }
    svg.addEventListener("pointerdown", event => {
      drawing = true;
      svg.setPointerCapture(event.pointerId);
      stroke(event);
    });
    svg.addEventListener("pointermove", event => { if (drawing) stroke(event); });
    for (const name of ["pointerup", "pointercancel"])
      svg.addEventListener(name, () => { drawing = false; });

    const names = ["change:values", "change:committed"];
    names.forEach(name => model.on(name, show));
    show();
    return () => names.forEach(name => model.off(name, show));
  },
};
