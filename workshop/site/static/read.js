// What this browser has read: a lesson counts once its end was seen. It is marked in the sidebar and on its
// card, and the next one behind what was read stands above all others.
(() => {
  const KEY = "course-read", root = new URL(document.documentElement.dataset.content_root, location);
  const stored = () => {
    try { return new Set(JSON.parse(localStorage.getItem(KEY) ?? "[]")); } catch { return new Set(); } // a page from a disk may have no store
  };
  const name = link => (link.href.startsWith(root.href) ? link.href.slice(root.href.length).replace(/\.html.*/, "") : "");
  const list = document.querySelector(".course-group"), next = document.querySelector(".course-next");
  const lessons = list ? [...list.querySelectorAll("a")] : [], cards = [...document.querySelectorAll(".course-cards a")];
  const here = location.href.startsWith(root.href) ? location.href.slice(root.href.length).replace(/\.html.*/, "") : "";
  function show() {
    const read = stored();
    for (const link of [...lessons, ...cards]) link.classList.toggle("course-read", read.has(name(link)));
    const open = link => !read.has(name(link)) && name(link) !== here;
    const behind = lessons.slice(lessons.findLastIndex(link => read.has(name(link))) + 1);
    const left = read.size ? behind.find(open) ?? lessons.find(open) : null;
    if (!next) return;
    next.hidden = !left;
    if (left) Object.assign(next.querySelector("a"), { href: left.href, textContent: left.textContent.trim() });
  }
  show();
  addEventListener("load", () => window.MathJax?.Hub?.Queue(() => { // a formula wider than its place is set smaller; what is wider still scrolls
    const shares = new Map(); // all of one block have one size
    for (const formula of document.querySelectorAll(".MathJax_Display")) {
      const place = formula.parentElement, wide = formula.firstElementChild.getBoundingClientRect().width;
      const share = place.clientWidth / Math.max(wide, place.scrollWidth - 1); // cases may be wider than their box
      const block = formula.closest(".course-equation") ?? formula;
      shares.set(block, [Math.min(share, shares.get(block)?.[0] ?? 1), ...(shares.get(block)?.slice(1) ?? []), formula]);
    }
    for (const [share, ...formulas] of shares.values())
      if (share < 1) for (const one of formulas) one.style.fontSize = `${Math.max(70, Math.floor(98 * share))}%`;
  }));
  addEventListener("load", () => { // this page's line in the middle, where it would not be seen at once
    const bar = document.querySelector(".bd-sidebar-primary"), line = [...document.querySelectorAll(".bd-docs-nav li.active")].at(-1);
    if (!bar) return;
    const end = line ? line.getBoundingClientRect().bottom + bar.scrollTop : 0;
    bar.scrollTop = end < innerHeight - 48 ? 0 : end - innerHeight / 2;
  });
  const end = document.querySelector(".prev-next-footer");
  if (!end || !/^notebooks\/\d\d_/.test(here)) return;
  new IntersectionObserver((entries, watch) => {
    if (!entries.some(entry => entry.isIntersecting) || scrollY < innerHeight) return;
    watch.disconnect();
    try { localStorage.setItem(KEY, JSON.stringify([...stored().add(here)])); } catch { /* nothing is marked then */ }
    show();
  }).observe(end);
})();
