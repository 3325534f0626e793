/* The second copy button of a code cell: it copies a program, the cell with
 * exactly the earlier code that it needs, and opens the box that shows it. */
(() => {
  "use strict";

  const ICON =
    '<svg viewBox="0 0 24 24" width="18" height="18" aria-hidden="true" fill="none"' +
    ' stroke="currentColor" stroke-width="1.6" stroke-linecap="round"' +
    ' stroke-linejoin="round"><path d="M5 4h9l5 5v11H5z"/><path d="M10 10.5v6l5-3z"/></svg>';

  /* Clipboard access needs a secure context; pages read from disk have none. */
  async function copy(text) {
    if (navigator.clipboard && window.isSecureContext) {
      await navigator.clipboard.writeText(text);
      return;
    }
    const area = document.createElement("textarea");
    area.value = text;
    area.setAttribute("readonly", "");
    area.style.cssText = "position:fixed;top:0;opacity:0";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (!done) throw new Error("the browser does not let pages copy");
  }

  function button(box) {
    const lines = box.dataset.lines;
    const made = document.createElement("button");
    made.type = "button";
    made.className = "program-copy";
    made.title = `Copy as a program that runs alone (${lines} lines, shown below)`;
    made.setAttribute("aria-label", made.title);
    made.innerHTML = ICON;
    made.addEventListener("click", async () => {
      const status = box.querySelector(".program-status");
      box.open = true;
      try {
        await copy(box.querySelector("pre.program").textContent);
        status.textContent = "copied";
        made.classList.add("success");
      } catch (error) {
        status.textContent = `not copied: ${error.message}`;
      }
      setTimeout(() => {
        status.textContent = "";
        made.classList.remove("success");
      }, 3000);
    });
    return made;
  }

  function wire() {
    for (const box of document.querySelectorAll("details.program-box")) {
      const input = box.closest("div.cell")?.querySelector(".cell_input .highlight");
      if (input) input.append(button(box));
    }
  }

  if (document.readyState === "loading") {
    document.addEventListener("DOMContentLoaded", wire);
  } else {
    wire();
  }
})();
