/* The tick after a sentence shows its check: its code, and when and where it passed.
 * Hovering and focusing show it, pressing goes into it, Escape closes it. A panel that
 * only shows is inert, so that Tab passes by. */
(() => {
  "use strict";

  const WAIT = 250;
  let open = null; // {tick, panel, isKept}
  let timer = 0;

  /* The links to the checks that a tick names, each with what it shows of its check. */
  function checks(tick) {
    const hashes = [tick.hash, ...(tick.dataset.also ?? "").split(" ")];
    return hashes
      .map((hash) => decodeURIComponent(hash.replace(/^#/, "")))
      .map((name) => ({ name, check: document.getElementById(name) }))
      .filter(({ check }) => check?.querySelector("pre"));
  }

  function linkTo(name, text) {
    const link = document.createElement("a");
    link.href = `#${name}`;
    link.textContent = text;
    link.addEventListener("click", () => close(false));
    return link;
  }

  function codeOf(check) {
    const code = check.querySelector("pre").cloneNode(true);
    // Names are links at the check alone, so that few presses of Tab pass the panel.
    code.querySelectorAll("a").forEach((link) => link.replaceWith(...link.childNodes));
    code.removeAttribute("id");
    code.tabIndex = 0;
    const box = document.createElement("div");
    box.className = "highlight";
    box.append(code);
    return box;
  }

  function content(tick) {
    const named = checks(tick);
    if (!named.length) return null;
    const panel = document.createElement("div");
    panel.className = "receipt-panel";
    panel.id = `${tick.id}-panel`;
    panel.setAttribute("role", "dialog");
    panel.setAttribute("aria-label", tick.getAttribute("aria-label"));
    const passed = named[0].check
      .closest("div.cell")
      .querySelector(".receipt-note p")
      .cloneNode(true);
    passed.lastChild.textContent = passed.lastChild.textContent.replace(/ It holds:$/, "");
    passed.className = "receipt-note";
    const foot = document.createElement("p");
    foot.className = "receipt-foot";
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Close";
    button.addEventListener("click", () => close(true));
    panel.append(passed);
    if (named.length === 1) {
      panel.append(codeOf(named[0].check));
      foot.append(linkTo(named[0].name, "The check on this page"));
    }
    for (const { name, check } of named.length > 1 ? named : []) {
      const title = document.createElement("p");
      title.className = "receipt-title";
      title.append(linkTo(name, name.replace(/^check-/, "").replaceAll("-", " ")));
      panel.append(title, codeOf(check));
    }
    foot.append(button);
    panel.append(foot);
    return panel;
  }

  function place(tick, panel) {
    if (getComputedStyle(panel).position === "fixed") return;
    const home = panel.offsetParent.getBoundingClientRect();
    const at = tick.getBoundingClientRect();
    const width = panel.offsetWidth;
    const right = document.documentElement.clientWidth - 12;
    const left = Math.max(12, Math.min(at.left, right - width));
    const below = at.bottom + 6 + panel.offsetHeight <= innerHeight;
    const top = below || at.top < panel.offsetHeight + 6
      ? at.bottom + 6
      : at.top - 6 - panel.offsetHeight;
    panel.style.left = `${left - home.left}px`;
    panel.style.top = `${top - home.top}px`;
  }

  function show(tick, isKept, isInert = false) {
    clearTimeout(timer);
    if (open?.tick === tick) {
      open.isKept ||= isKept;
      open.panel.inert = false;
      return;
    }
    close(false);
    const panel = content(tick);
    if (!panel) return;
    const block = tick.closest("p, li, td, dd, div") ?? tick;
    block.after(panel);
    panel.inert = isInert;
    open = { tick, panel, isKept };
    tick.setAttribute("aria-expanded", "true");
    tick.setAttribute("aria-controls", panel.id);
    panel.addEventListener("mouseenter", () => clearTimeout(timer));
    panel.addEventListener("mouseleave", leave);
    panel.addEventListener("focusout", blur);
    place(tick, panel);
  }

  /* Pressed: the panel stays, and a keyboard goes on in it. */
  function enter(tick, isByKey) {
    show(tick, true);
    if (isByKey) open?.panel.querySelector("pre").focus();
  }

  function close(isBack) {
    clearTimeout(timer);
    if (!open) return;
    const { tick, panel } = open;
    open = null;
    tick.setAttribute("aria-expanded", "false");
    tick.removeAttribute("aria-controls");
    if (isBack) {
      quiet = true;
      tick.focus();
      quiet = false;
    }
    panel.remove();
  }

  let quiet = false; // while focus goes back to a tick whose panel was closed

  function leave() {
    clearTimeout(timer);
    timer = setTimeout(() => open && !open.isKept && close(false), WAIT);
  }

  /* Focus that goes elsewhere than the tick and its panel closes it. */
  function blur(event) {
    const to = event.relatedTarget;
    if (open && to && to !== open.tick && !open.panel.contains(to)) close(false);
  }

  function wire() {
    for (const tick of document.querySelectorAll("a.receipt")) {
      tick.setAttribute("role", "button");
      tick.setAttribute("aria-haspopup", "dialog");
      tick.setAttribute("aria-expanded", "false");
      tick.addEventListener("mouseenter", () => {
        clearTimeout(timer);
        timer = setTimeout(() => show(tick, false), WAIT);
      });
      tick.addEventListener("mouseleave", leave);
      tick.addEventListener("focus", () => {
        if (!quiet && tick.matches(":focus-visible")) show(tick, true, true);
      });
      tick.addEventListener("focusout", blur);
      tick.addEventListener("click", (event) => {
        event.preventDefault();
        if (open?.tick === tick && open.isKept && event.detail) close(false);
        else enter(tick, !event.detail);
      });
      tick.addEventListener("keydown", (event) => {
        if (event.key !== " ") return;
        event.preventDefault();
        enter(tick, true);
      });
    }
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && open) close(true);
    });
    document.addEventListener("click", (event) => {
      const inside = open?.panel.contains(event.target) || open?.tick === event.target;
      if (open && !inside) close(false);
    });
    addEventListener("resize", () => open && place(open.tick, open.panel));
  }

  wire(); // the script is deferred: the page is there
})();
