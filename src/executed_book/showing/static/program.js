/* The copy button of a code cell that is not the plain one: it copies a program, the
 * cell with exactly the earlier code that it needs. Pointing at it, or moving to it by
 * keyboard, shows the program; pressing it copies the program and keeps it in view. */
(() => {
  "use strict";

  /* Clipboard access needs a secure context; pages read from disk have none. */
  async function copyText(text) {
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

  /* What tells a code block from the others of its page, to be heard after a verb. */
  function nameOf(block) {
    const cell = block.closest("div.cell")?.id.match(/^cell-(\d+)$/);
    return cell ? `code of cell ${cell[1]}` : "code";
  }

  /* The row of buttons at the top of a code block; one is made if there is none.
   *
   * Tab comes to one of them alone. From there the arrow keys lead through the others
   * and the links in the code, of which a page has more than of all else. */
  function toolsOf(block) {
    let tools = block.querySelector(":scope > .code-tools");
    if (!tools) {
      tools = document.createElement("div");
      tools.className = "code-tools";
      tools.setAttribute("role", "toolbar");
      tools.setAttribute("aria-label", `Copy or follow the ${nameOf(block)}`);
      block.prepend(tools);
      const stops = () => [...block.querySelectorAll(".code-tools button, pre a[href]")];
      stopAt(0, stops());
      block.addEventListener("keydown", (event) => step(event, stops()));
      new MutationObserver(() => stopAt(0, stops())).observe(tools, { childList: true });
    }
    return tools;
  }

  function stopAt(nth, stops) {
    stops.forEach((stop, n) => { stop.tabIndex = n === nth ? 0 : -1; });
  }

  function step(event, stops) {
    const way = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const at = stops.indexOf(document.activeElement);
    if (at < 0 || !way) return;
    event.preventDefault();
    const next = (at + way + stops.length) % stops.length;
    stopAt(next, stops);
    stops[next].focus();
  }

  /* A button that copies `text()` and says for a while that it did. `heard` is its name
   * for a screen reader, which begins with its label. */
  function copyButton(label, name, text, heard) {
    const made = document.createElement("button");
    const said = document.createElement("span");
    made.type = "button";
    made.className = name;
    made.textContent = label;
    if (heard) made.setAttribute("aria-label", heard);
    said.className = "copy-status";
    said.setAttribute("role", "status");
    made.addEventListener("click", async () => {
      try {
        await copyText(text());
        said.textContent = "copied";
        made.classList.add("success");
      } catch (error) {
        said.textContent = `not copied: ${error.message}`;
      }
      setTimeout(() => {
        said.textContent = "";
        made.classList.remove("success");
      }, 3000);
    });
    return [made, said];
  }

  let current = null;

  function hide() {
    current?.classList.remove("shown");
    current = null;
  }

  function show(holder) {
    if (current !== holder) hide();
    current = holder;
    holder.querySelector("details").open = true;
    holder.classList.add("shown");
  }

  function wire(holder) {
    const block = holder.closest("div.cell")?.querySelector(".cell_input .highlight");
    const box = holder.querySelector("details.program-box");
    if (!block || !box) return;
    holder.classList.add("wired");
    const program = () => box.querySelector("pre.program").textContent;
    const heard = `Copy as program: ${nameOf(block)}`;
    const [made, said] = copyButton("Copy as program", "program-copy", program, heard);
    const lines = box.dataset.lines;
    made.title = `The cell with the earlier code that it needs: ${lines} lines that run alone`;
    toolsOf(block).append(made, said);

    let kept = false;
    let waiting = null;
    const cancel = () => clearTimeout(waiting);
    const leave = (event) => {
      cancel();
      if (event.pointerType === "mouse") kept = false;
      waiting = setTimeout(() => {
        const focused = holder.contains(document.activeElement) || made.matches(":focus-visible");
        if (kept || focused || holder.matches(":hover") || made.matches(":hover")) return;
        if (current === holder) hide();
      }, 250);
    };
    made.addEventListener("pointerenter", (event) => {
      cancel();
      if (event.pointerType === "mouse") waiting = setTimeout(show, 250, holder);
    });
    made.addEventListener("focus", () => made.matches(":focus-visible") && show(holder));
    made.addEventListener("click", () => {
      kept = true;
      show(holder);
    });
    for (const part of [made, holder]) {
      part.addEventListener("pointerleave", leave);
      part.addEventListener("focusout", leave);
    }
    document.addEventListener("pointerdown", ({ target }) => {
      if (holder.contains(target) || made.contains(target)) return;
      kept = false;
      if (current === holder) hide();
    });
    document.addEventListener("keydown", ({ key }) => {
      if (key !== "Escape") return;
      kept = false;
      if (current === holder) hide();
    });
  }

  globalThis.codeTools = { copyButton, nameOf, toolsOf };
  document.querySelectorAll(".program-holder").forEach(wire); // the script is deferred
})();
