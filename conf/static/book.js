/* A plain copy button for every block of code that one may want to run. */
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

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
