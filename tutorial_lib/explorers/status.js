// What an explorer says in words: what is seen, how its challenge stands, what went wrong.

export default {
  render({ model, el }) {
    el.classList.add("order-status");
    const lines = [["description", null], ["challenge", "status"], ["error", "alert"]].map(([name, role]) => {
      const line = document.createElement("div");
      line.className = `order-${name}`;
      if (role) line.setAttribute("role", role); // announced when it changes; the first is not
      el.append(line);
      const show = () => { if (line.textContent !== model.get(name)) line.textContent = model.get(name); };
      model.on(`change:${name}`, show);
      show();
      return [name, show];
    });
    return () => lines.forEach(([name, show]) => model.off(`change:${name}`, show));
  },
};
