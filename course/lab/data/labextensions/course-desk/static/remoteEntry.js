// The desk's extension: it opens the contents of the lesson, and the course's own page in place of JupyterLab's
// launcher. A federated extension, written by hand: a container of module federation needs no more than init() and
// get(), so nothing has to be built.
(() => {
  const STYLE = `
    /* a stored answer is shown without a kernel, so there is nothing to mend: no red icon */
    .jupyter-widgets-disconnected::before { display: none !important; }
    .course-desk { overflow: auto; padding: 40px clamp(20px, 6%, 90px) 60px; font: 15px/1.5 var(--jp-ui-font-family); color: var(--jp-ui-font-color1); background: var(--jp-layout-color1); }
    .course-desk > * { max-width: 860px; margin-inline: auto; }
    .course-desk button { font: inherit; color: inherit; background: none; border: 0; padding: 0; text-align: left; cursor: pointer; }
    .course-desk .cd-go { display: block; width: 100%; box-sizing: border-box; background: #14171d; color: #e8eaf0; border-radius: 14px; padding: 22px 28px; margin-bottom: 30px; }
    .course-desk .cd-go:is(:hover, :focus-visible) { outline: 3px solid #62b5ff; }
    .cd-go small { display: block; color: #ff9a52; font-size: 15px; font-weight: 700; }
    .cd-go b { display: block; font-size: 26px; line-height: 1.2; margin: 4px 0; }
    .cd-go span { color: #a7afbe; font-size: 17px; }
    .course-desk ol { list-style: none; padding: 0; }
    .course-desk li.cd-lesson { display: grid; grid-template-columns: 34px minmax(0, 1fr) 150px; gap: 2px 14px; align-items: center; padding: 9px 12px; border-radius: 10px; }
    .course-desk li.cd-next { background: var(--jp-layout-color2); }
    .cd-mark { width: 30px; height: 30px; border-radius: 50%; display: grid; place-items: center; font-weight: 700; border: 2px solid var(--jp-border-color1); box-sizing: border-box; }
    .cd-done .cd-mark { background: #08765a; border-color: #08765a; color: #fff; }
    .cd-next .cd-mark { background: #b84a06; border-color: #b84a06; color: #fff; }
    .course-desk .cd-title { font-size: 17px; font-weight: 600; }
    .course-desk li button:hover { text-decoration: underline; }
    .cd-share { font-variant-numeric: tabular-nums; color: var(--jp-ui-font-color2); display: grid; grid-template-columns: 1fr 54px; gap: 10px; align-items: center; text-align: right; }
    .cd-share i { height: 6px; border-radius: 3px; background: linear-gradient(#08765a, #08765a) left / var(--share) 100% no-repeat var(--jp-border-color2); }
    .cd-more { grid-column: 2 / 4; display: flex; flex-wrap: wrap; gap: 2px 18px; font-size: 13.5px; color: var(--jp-ui-font-color2); }`;

  const node = (tag, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };

  async function open(app, file, section = "") {
    const panel = await app.commands.execute("docmanager:open", { path: file });
    await panel?.context?.ready;
    await panel?.revealed;
    await panel?.sessionContext?.ready;  // before that, the notebook goes back to its top
    const notebook = panel?.content, heading = cell => cell.model.sharedModel.getSource().match(/^#+ +(.*?)\s*$/m)?.[1];
    const n = section ? notebook?.widgets?.findIndex(cell => heading(cell) === section) : -1;
    if (!(n > 0)) return;
    notebook.activeCellIndex = n;
    // The notebook still grows, and goes back to its top, while its pictures are drawn: stay until the reader moves.
    let free = false;
    for (const kind of ["wheel", "pointerdown", "keydown"]) panel.node.addEventListener(kind, () => { free = true; }, { once: true });
    for (let tries = 0; tries < 30 && !free && notebook.widgets[n]; tries++) {
      const off = notebook.widgets[n].node.getBoundingClientRect().top - notebook.node.getBoundingClientRect().top;
      if (Math.abs(off) > 60) notebook.widgets[n].node.scrollIntoView({ block: "start" });
      await new Promise(wake => setTimeout(wake, 150));
    }
  }

  async function asked(app) {
    const { baseUrl, token } = app.serviceManager.serverSettings;
    const answer = await fetch(`${baseUrl}course/desk`, { headers: token ? { Authorization: `token ${token}` } : {} });
    if (!answer.ok) throw new Error(`the desk's contents: ${answer.status}`);
    return answer.json();
  }

  function draw(app, place, { go, lessons, words }) {
    const link = (text, file, className) =>
      node("button", { type: "button", textContent: text, className: className ?? "", onclick: () => open(app, file) });
    const first = node("button", { type: "button", className: "cd-go", onclick: () => open(app, go.file, go.section) },
      node("small", { textContent: go.label }), node("b", { textContent: go.title }), node("span", { textContent: go.section }));
    const rows = lessons.map((lesson, n) => {
      const done = lesson.asked > 0 && lesson.done === lesson.asked, next = lesson.file === go.file;
      const bar = node("i");
      bar.style.setProperty("--share", `${lesson.asked ? 100 * lesson.done / lesson.asked : 0}%`);
      const more = node("div", { className: "cd-more" }, ...lesson.quests.map(quest => link(quest.title, quest.file)));
      if (lesson.exercise) more.prepend(link(words.Exercise, lesson.exercise));
      const mark = node("span", { className: "cd-mark", textContent: done ? "✓" : next ? "▸" : n });
      mark.setAttribute("role", "img");
      mark.setAttribute("aria-label", done ? words.Done : next ? words.Next : `${n}`);
      return node("li", { className: `cd-lesson${done ? " cd-done" : next ? " cd-next" : ""}` }, mark,
        link(lesson.title, lesson.file, "cd-title"),
        node("span", { className: "cd-share" }, bar, `${lesson.done} / ${lesson.asked}`), more);
    });
    place.replaceChildren(node("h1", { textContent: words["The course"] }), first, node("ol", {}, ...rows));
  }

  let shared;
  const plugin = {
    id: "course-desk:plugin",
    autoStart: true,
    async activate(app) {
      document.body.dataset.courseDesk = "on";
      document.head.append(node("style", { textContent: STYLE }));
      if (app.name !== "JupyterLab") return;  // Notebook 7 has no contents at the left, and no launcher
      const { Widget } = (await Object.values(shared["@lumino/widgets"])[0].get())();
      let desk;
      const show = async () => {
        if (!desk) {
          desk = new Widget({ node: node("div", { className: "course-desk", tabIndex: -1 }) });
          desk.id = "course-desk";
          desk.title.closable = true;
        }
        if (!desk.isAttached) app.shell.add(desk, "main");
        const found = await asked(app);
        desk.title.label = found.words["The course"];
        draw(app, desk.node, found);
        app.shell.activateById(desk.id);
        return desk;
      };
      // JupyterLab's own is switched off; what asks for it, such as the “+” beside the tabs, gets ours.
      app.commands.addCommand("launcher:create", { label: "The course", execute: show });
      app.restored.then(async () => {
        app.shell.activateById("table-of-contents");  // a stored layout alone leaves the left side shut
        // Where the address names a notebook, that one is on its way: nothing may stand before it.
        const { treePath } = JSON.parse(document.getElementById("jupyter-config-data").textContent);
        const empty = () => app.shell.isEmpty("main");
        if (!treePath && ((await asked(app)).begun || empty())) await show();
        let filled = !empty();
        app.shell.layoutModified.connect(() => {
          if (!empty()) filled = true;
          else if (filled) show();
        });
      });
    },
  };
  (window._JUPYTERLAB = window._JUPYTERLAB || {})["course-desk"] = {
    init(scope) { shared = scope; },
    async get() { return () => ({ __esModule: true, default: plugin }); },
  };
})();
