"use strict";
(() => {
  const $ = (selector, from = document) => [...from.querySelectorAll(selector)];
  const form = document.querySelector(".controls");
  const open = (node) => { for (; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true; };

  // A deep link shows its target, whatever is folded or filtered away.
  const arrive = () => {
    let target = null;
    try { target = document.getElementById(decodeURIComponent(location.hash.slice(1))); } catch { return; }
    if (!target) return;
    if (target.closest("[hidden]")) form.reset();
    open(target.parentElement);
    const own = target.tagName === "DETAILS" ? target : target.querySelector(":scope > details");
    if (own) own.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", arrive);

  // Print shows every model, also in browsers whose style sheets cannot open what is folded, and leaves it as it was.
  let folded = [];
  addEventListener("beforeprint", () => { folded = $(".model:not([open])"); for (const one of folded) one.open = true; });
  addEventListener("afterprint", () => { for (const one of folded) one.open = false; folded = []; });

  if (form) {
    const body = document.querySelector(".models tbody");
    const text = document.getElementById("q"), decision = document.getElementById("d"), rule = document.getElementById("r");
    const rows = $("tr", body).map((row, at) => ({
      row, at, article: document.getElementById(row.dataset.m),
      cells: [...row.cells].map((cell) => cell.textContent.trim()),
      text: `${row.textContent} ${row.dataset.r} ${row.dataset.s}`.toLowerCase(), decision: row.dataset.d, rules: row.dataset.r.split(" "),
    }));
    const groups = new Map();
    for (const { article } of rows) groups.set(article.parentElement, 0);

    const filter = () => {
      const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
      let count = 0;
      for (const group of groups.keys()) groups.set(group, 0);
      for (const item of rows) {
        const shown = (!decision.value || item.decision === decision.value) && (!rule.value || item.rules.includes(rule.value))
          && words.every((word) => item.text.includes(word));
        item.row.hidden = item.article.hidden = !shown;
        if (shown) { count += 1; const group = item.article.parentElement; groups.set(group, groups.get(group) + 1); }
      }
      for (const [group, left] of groups) group.hidden = !left;
      document.getElementById("shown").textContent = `${count} of ${rows.length} models`;
    };
    form.addEventListener("input", filter);
    form.addEventListener("reset", () => setTimeout(filter));
    form.addEventListener("submit", (event) => event.preventDefault());
    const fold = (to) => { for (const { article } of rows) article.firstElementChild.open = to; };
    document.getElementById("fold").addEventListener("click", () => fold(false));
    document.getElementById("unfold").addEventListener("click", () => fold(true));

    const heads = $(".models th[data-sort]");
    const order = new Intl.Collator("en", { numeric: true });
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const sign = down ? -1 : 1;
        const compare = column ? (a, b) => order.compare(a.cells[column], b.cells[column]) : (a, b) => a.at - b.at;
        // A missing value is last in either direction.
        const missing = (item) => (item.cells[column] === "-" ? 1 : 0);
        const sorted = [...rows].sort((a, b) => missing(a) - missing(b) || sign * compare(a, b) || a.at - b.at);
        body.append(...sorted.map((item) => item.row));
        body.classList.toggle("sorted", column > 0 || down);
      });
    });
    heads[0].setAttribute("aria-sort", "ascending");
    form.hidden = false;
    filter();
  }
  arrive();
})();
