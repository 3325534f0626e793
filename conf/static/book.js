/* A plain copy button for every block of code that one may want to run; what scrolls
 * is reached by keyboard; and paper is white, with what is folded for a screen open. */
(() => {
  "use strict";

  function start() {
    const { copyButton, nameOf, toolsOf } = globalThis.codeTools;
    for (const block of document.querySelectorAll("article div.highlight")) {
      if (block.closest(".cell_output, .ja-lens")) continue;
      const text = () => block.querySelector("pre").textContent.replace(/\n$/, "");
      const parts = copyButton("Copy", "plain-copy", text, `Copy ${nameOf(block)}`);
      toolsOf(block).prepend(...parts);
    }
    followSections();
  }

  /* The same page of another release opens at the section that one reads. */
  function keepSection(event) {
    const link = event.target.closest?.("a.other-release");
    if (link) link.hash = location.hash;
  }

  /* The list of pages shows the entry of this one: only the list scrolls for that. */
  function showWhereOneIs() {
    const entry = document.querySelector("nav.bd-links [aria-current=page]");
    if (!entry?.checkVisibility()) return;
    let bar = entry.parentElement;
    while (bar && !/auto|scroll/.test(getComputedStyle(bar).overflowY)) bar = bar.parentElement;
    if (!bar) return;
    const around = bar.getBoundingClientRect();
    const end = Math.min(around.bottom, innerHeight);
    const { top, bottom } = entry.getBoundingClientRect();
    if (top < around.top || bottom > end) bar.scrollTop += (top + bottom - around.top - end) / 2;
  }

  /* "On this page" marks the section at the top of the window. The theme waits for a heading
   * to come by, which is wrong until then for who scrolls up; it does not find the list under
   * its new name. */
  function followSections() {
    const list = document.getElementById("pst-page-toc-nav");
    if (!list) return;
    list.id = "sections-of-page";
    const links = [...list.querySelectorAll("a")];
    const sections = links.map(({ hash }) => document.getElementById(decodeURIComponent(hash.slice(1))));

    const follow = () => {
      const line = document.querySelector(".bd-header").getBoundingClientRect().bottom + 64;
      const atEnd = scrollY > 0 && scrollY + innerHeight >= document.documentElement.scrollHeight - 2;
      const begun = sections.filter((section) => section?.getBoundingClientRect().top < line);
      const now = links[(atEnd ? links : begun).length - 1];
      for (const link of links) {
        link.classList.toggle("active", link === now);
        link.toggleAttribute("aria-current", link === now);
      }
      for (const entry of list.querySelectorAll(".toc-entry")) {
        entry.classList.toggle("active", entry.contains(now ?? null));
      }
    };
    addEventListener("scroll", follow, { passive: true });
    addEventListener("resize", follow);
    follow();
  }

  /* What scrolls and holds nothing to move to must itself be moved to. */
  function reachScrolling() {
    const boxes = "article :is(.ja-table, .ja-status, div.math, .output.text_html, .output.text_html > div)";
    for (const box of document.querySelectorAll(boxes)) {
      const scrolls = box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight;
      const holds = box.querySelector("a, button, input, [tabindex='0']");
      if (scrolls && !holds) box.tabIndex = 0;
      else if (box.tabIndex === 0) box.removeAttribute("tabindex");
    }
  }

  /* Paper has what is folded until one asks for it, an output or a solution; code that
   * the author folded, a check and a program are not missed there. */
  const FOLDED_TO_THE_END = ".program-box, :not(.tag_solution) > .above-input";

  function unfold() {
    const folded = `article details:not([open], ${FOLDED_TO_THE_END})`;
    const opened = [...document.querySelectorAll(folded)];
    for (const box of opened) box.open = true;
    addEventListener("afterprint", () => opened.forEach((box) => { box.open = false; }), { once: true });
  }

  /* Paper is white, whatever the screen was: also what cells show in colors of their own. */
  function printLight({ matches }) {
    const { dataset } = document.documentElement;
    if (matches) {
      dataset.onScreen = dataset.theme;
      dataset.theme = "light";
    } else if (dataset.onScreen) {
      dataset.theme = dataset.onScreen;
      delete dataset.onScreen;
    }
  }

  matchMedia("print").addEventListener("change", printLight);
  addEventListener("click", keepSection, { capture: true });
  addEventListener("beforeprint", unfold);
  addEventListener("resize", reachScrolling);
  addEventListener("load", reachScrolling);
  addEventListener("load", showWhereOneIs);

  for (const toggle of document.querySelectorAll(".bd-header .primary-toggle")) {
    toggle.addEventListener("click", () => requestAnimationFrame(showWhereOneIs));
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
