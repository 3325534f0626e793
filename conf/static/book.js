/* A plain copy button for every block of code that one may want to run; what scrolls
 * is reached by keyboard; and paper is white, with what is folded for a screen open. */
(() => {
  "use strict";

  function start() {
    const { copyButton, toolsOf } = globalThis.codeTools;
    for (const block of document.querySelectorAll("article div.highlight")) {
      if (block.closest(".cell_output, .ja-lens")) continue;
      const text = () => block.querySelector("pre").textContent.replace(/\n$/, "");
      const parts = copyButton("Copy", "plain-copy", text);
      toolsOf(block).prepend(...parts);
    }
  }

  /* What scrolls and holds nothing to move to must itself be moved to. */
  function reachScrolling() {
    const boxes = "article :is(.ja-measure, .ja-log, .ja-status, div.math, .output.text_html, .output.text_html > div)";
    for (const box of document.querySelectorAll(boxes)) {
      const scrolls = box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight;
      const holds = box.querySelector("a, button, input, [tabindex='0']");
      if (scrolls && !holds) box.tabIndex = 0;
      else if (box.tabIndex === 0) box.removeAttribute("tabindex");
    }
  }

  /* A solution is announced by the text; a program and a check stand for themselves. */
  function unfold() {
    const folded = "article details:not([open], .program-box, .tag_check details)";
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
  addEventListener("beforeprint", unfold);
  addEventListener("resize", reachScrolling);
  addEventListener("load", reachScrolling);

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
