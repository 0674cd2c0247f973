// Lanes have learned nothing when a deck is printed: their pictures stay. Else a finger moves them, and not the slide.
for (const place of document.querySelectorAll("[data-playground]")) {
  if (new URLSearchParams(location.search).has("print-pdf")) place.replaceWith(...place.childNodes);
  else place.dataset.preventSwipe = "";
}
// Formulas are measured when they are set, so this happens while every slide is laid out; then the show begins.
window.MathJax = {
  jax: ["input/TeX", "output/HTML-CSS"],
  extensions: ["tex2jax.js"],
  messageStyle: "none",
  showMathMenu: false,
  tex2jax: { inlineMath: [["$", "$"]], displayMath: [["$$", "$$"]], skipTags: ["script", "style", "pre", "code"],
             ignoreClass: "notes" },
  "HTML-CSS": { availableFonts: [], imageFont: null, preferredFont: null, webFont: "STIX-Web",
                styles: { "@font-face": { "font-family": "MathJax_Blank", src: "local('none')" } } },
  AuthorInit() {
    MathJax.Hub.Register.StartupHook("End", () => {
      for (const formula of document.querySelectorAll(".MathJax_Display")) {  // one that is too wide is set smaller
        const share = formula.clientWidth / formula.firstElementChild.getBoundingClientRect().width;
        if (share < 1) formula.style.setProperty("font-size", `${Math.floor(99 * share)}%`, "important");
      }
      document.body.classList.remove("setting");
      Reveal.initialize({ width: 1280, height: 720, margin: 0, center: false, display: "flex", hash: true,
                          slideNumber: "c/t", controls: false, transition: "none", pdfSeparateFragments: false,
                          plugins: [RevealNotes] });
    });
  },
};
