// An explorer as a widget: Python sees the parameters when they come to rest, nothing else travels.
export default {
  render({ model, el }) {
    const place = document.createElement("div"), [[name, own]] = Object.entries(data);
    el.append(place);
    const explorer = kit.live(place, explorers[name], {
      data: own, params: model.get("params"),
      change: params => { model.set("params", params); model.save_changes(); },
    });
    place.live = explorer;
    const moved = () => explorer.set(model.get("params"));
    model.on("change:params", moved);
    return () => { model.off("change:params", moved); explorer.destroy(); };
  },
};
