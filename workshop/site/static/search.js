// Excerpts of the search show what is written in the article, and none of the theme's buttons and menus.
if (typeof Search !== "undefined") Search.htmlToText = (page, anchor) => {
  const read = new DOMParser().parseFromString(page, "text/html");
  const article = read.querySelector("article") ?? read.body;
  article.querySelectorAll(".headerlink, script, style, nav, summary, .cell_input").forEach(one => one.remove());
  const place = anchor && article.querySelector(anchor);
  return (place || article).textContent.replace(/\s+/g, " ");
};
