// What a lane's worker does: it learns in short turns, reports now and then, and answers questions in between.
function work({ Run }) {
  let run, id, pace = 50, on = false, timer = 0, due = 0, said = 0, last = {};
  const tell = more => { said = performance.now(); postMessage({ id, s: run.s, ...more }); };
  const report = () => {
    const done = run.s >= run.steps;
    tell({ ...last, at: run.at, shares: run.measure(done ? 128 : 8), ...run.look(), table: run.table(), done });
  };
  function turn() {
    const start = performance.now();
    timer = 0;
    due = Math.max(due, start - 250);
    while (run.s < run.steps && performance.now() - start < 50 && (!pace || due <= performance.now())) {
      last = run.step();
      due += pace ? 1000 / pace : 0;
    }
    if (run.s >= run.steps) on = false;
    if (!on || performance.now() - said > 150) report();
    if (on) timer = setTimeout(turn, pace ? Math.max(0, due - performance.now()) : 0);
  }
  onmessage = ({ data }) => {
    try {
      if (data.make) {
        clearTimeout(timer);
        ({ id } = data); on = false; last = {};
        run = new Run(data.make);
        report();
      }
      if ("pace" in data) { ({ pace } = data); due = performance.now(); }
      if (data.step && run.s < run.steps) { last = run.step(); report(); }
      if ("go" in data) {
        clearTimeout(timer);
        on = data.go && run.s < run.steps; due = performance.now();
        if (on) turn(); else report();
      }
      if (data.look) tell({ told: run.explain(...data.look) });
    } catch (problem) { postMessage({ id: data.id ?? id, broken: String(problem) }); }
  };
}
