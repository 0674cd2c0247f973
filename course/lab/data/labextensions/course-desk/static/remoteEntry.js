// The desk's extension: it opens the contents of the lesson. A federated extension, written by hand: a
// container of module federation needs no more than init() and get(), so nothing has to be built.
(() => {
  const plugin = {
    id: "course-desk:plugin",
    autoStart: true,
    activate(app) {
      document.body.dataset.courseDesk = "on";
      // A stored layout alone leaves the left side shut; and Notebook 7 has no contents at the left.
      app.restored.then(() => {
        if (app.name === "JupyterLab") app.shell.activateById("table-of-contents");
      });
    },
  };
  (window._JUPYTERLAB = window._JUPYTERLAB || {})["course-desk"] = {
    init() {},
    async get() { return () => ({ __esModule: true, default: plugin }); },
  };
})();
