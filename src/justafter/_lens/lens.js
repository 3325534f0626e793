(() => {
  // Each lens on a page carries this script; the first one to run serves all.
  if (window.justafterLens) return;
  window.justafterLens = true;

  const PIECE = ".ja-lens [data-e]";
  const HINT = "Point at, tap or focus any piece to see what it became. Arrow keys move, Enter holds, Escape clears.";
  const pinned = new WeakSet();

  const targets = (piece) => piece.dataset.e.split(" ").filter(Boolean);
  const lensOf = (piece) => piece.closest(".ja-lens");
  const paneOf = (piece) => piece.closest(".ja-pane");
  const visible = (piece) => piece.getClientRects().length > 0;

  function linked(piece) {
    const all = targets(piece).map((id) => `[data-e~="${id}"]`).join(",");
    return new Set(all ? lensOf(piece).querySelectorAll(all) : []);
  }

  function clear(lens) {
    pinned.delete(lens);
    for (const one of lens.querySelectorAll(".is-lit, .is-on"))
      one.classList.remove("is-lit", "is-on");
    say(lens, HINT);
  }

  function light(piece) {
    const lens = lensOf(piece);
    clear(lens);
    const lit = linked(piece);
    for (const one of lit) one.classList.add("is-lit");
    piece.classList.add("is-on");
    reveal(piece, lit);
    say(lens, describe(piece, lit));
  }

  // Scroll the other columns, never the page.
  function reveal(piece, lit) {
    for (const pane of lensOf(piece).querySelectorAll(".ja-pane")) {
      if (pane === paneOf(piece)) continue;
      const first = [...lit].find((one) => pane.contains(one) && visible(one));
      if (!first) continue;
      const box = first.getBoundingClientRect(), frame = pane.getBoundingClientRect();
      if (box.top < frame.top || box.bottom > frame.bottom)
        pane.scrollTop += box.top - frame.top - frame.height / 3;
    }
  }

  function some(items, limit) {
    const each = [...new Set(items)];
    const more = each.length - limit;
    return each.slice(0, limit).join(", ") + (more > 0 ? ` and ${more} more` : "");
  }

  function describe(piece, lit) {
    const pieces = [...lit];
    const code = pieces.filter((one) => one.matches(".ja-x")).map((one) => short(one.textContent));
    const equations = pieces.filter((one) => one.matches(".ja-q"));
    const kernels = pieces.filter((one) => one.dataset.k).map((one) => one.dataset.k);
    const gone = equations.filter((one) => one.matches(".ja-gone"));
    if (!equations.length) return "XLA added this: no equation became it.";
    const parts = [
      `Python: ${some(code, 2) || "no expression"}`,
      `jaxpr: ${some(equations.map((one) => `${one.dataset.e} ${one.dataset.p}`), 6)}`,
      `kernels: ${some(kernels, 6) || "none"}`,
    ];
    if (gone.length) parts.push(some(gone.map((one) => `${one.dataset.e} ${one.dataset.f}`), 2));
    return parts.join(" \u00b7 ");
  }

  function short(text) {
    const line = text.replace(/\s+/g, " ");
    return line.length > 48 ? line.slice(0, 47) + "\u2026" : line;
  }

  function say(lens, text) {
    lens.classList.add("is-live");
    lens.querySelector(".ja-status").textContent = text;
  }

  function pin(piece) {
    light(piece);
    pinned.add(lensOf(piece));
  }

  function focus(piece) {
    if (!piece) return;
    if (!piece.matches("summary")) piece.tabIndex = -1;
    piece.focus();
  }

  // Up and down in a column; left and right to what is linked in the next one.
  function step(current, key) {
    const pane = current.closest(".ja-pane");
    const lens = lensOf(pane);
    const inPane = (box) => [...box.querySelectorAll("[data-e]")].filter(visible);
    const list = inPane(pane), at = list.indexOf(current);
    if (key === "ArrowDown") return list[Math.min(at + 1, list.length - 1)];
    if (key === "ArrowUp") return list[Math.max(at - 1, 0)];
    const panes = [...lens.querySelectorAll(".ja-pane")];
    const next = panes[panes.indexOf(pane) + (key === "ArrowRight" ? 1 : -1)];
    if (!next) return null;
    const there = inPane(next);
    return there.find((one) => one.classList.contains("is-lit")) ?? there[0];
  }

  const pieceAt = (event) => event.target.closest?.(PIECE);
  const KEYS = ["ArrowDown", "ArrowUp", "ArrowLeft", "ArrowRight"];

  document.addEventListener("pointerover", (event) => {
    const piece = pieceAt(event);
    if (event.pointerType !== "touch" && piece && !pinned.has(lensOf(piece))) light(piece);
  });
  document.addEventListener("pointerout", (event) => {
    const lens = event.target.closest?.(".ja-lens");
    const goes = event.relatedTarget?.closest?.(PIECE);
    if (lens && !pinned.has(lens) && !(goes && lensOf(goes) === lens)) clear(lens);
  });
  document.addEventListener("click", (event) => {
    const piece = pieceAt(event);
    if (piece) { pin(piece); return; }
    const lens = event.target.closest?.(".ja-lens");
    if (lens && !event.target.closest("summary")) clear(lens);
  });
  document.addEventListener("focusin", (event) => {
    const piece = pieceAt(event);
    if (piece === event.target) light(piece);
  });
  document.addEventListener("keydown", (event) => {
    const spot = event.target.closest?.(".ja-pane, " + PIECE);
    if (!spot || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") {
      clear(lensOf(spot));
      if (spot.dataset.e !== undefined) paneOf(spot).focus();
    } else if (KEYS.includes(event.key)) {
      const next = step(spot, event.key);
      if (next) { event.preventDefault(); focus(next); }
    } else if (event.key === "Enter" && spot.dataset.e !== undefined) {
      pin(spot);
    }
  });

  const greet = () => document.querySelectorAll(".ja-lens").forEach((lens) => {
    if (!lens.classList.contains("is-live")) say(lens, HINT);
  });
  greet();
  document.addEventListener("DOMContentLoaded", greet);
})();
