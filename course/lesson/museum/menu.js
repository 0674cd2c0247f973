// A labelled native menu.

export default {
  render({ model, el }) {
    const label = document.createElement("label"), menu = document.createElement("select");
    label.append(`${model.get("label")} `, menu);
    label.style.font = "15px var(--jp-ui-font-family, system-ui, sans-serif)";
    menu.style.cssText = "font: inherit; color: inherit; background: var(--jp-layout-color0, Canvas); padding: 3px 10px";
    model.get("texts").forEach((text, i) => menu.add(new Option(text, i)));
    // JupyterLab sees a key after us; Notebook before us, but leaves a marked element alone.
    menu.dataset.lmSuppressShortcuts = "true";
    menu.addEventListener("keydown", event => { if (event.key !== "Tab") event.stopPropagation(); });
    menu.addEventListener("input", () => { model.set("index", +menu.value); model.save_changes(); });
    const show = () => { menu.value = model.get("index"); };
    show();
    model.on("change:index", show);
    el.append(label);
    return () => model.off("change:index", show);
  },
};
