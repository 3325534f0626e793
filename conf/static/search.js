/* The search box: it loads what it needs when it is first used, and a click on a result
 * opens the section with the words marked. Everything comes by script elements, so that
 * it works on pages read from disk too. */
(() => {
  "use strict";

  const ROOT = document.documentElement.dataset.content_root ?? "./";
  const NEEDED = [
    "base-stemmer.js",
    "english-stemmer.js",
    "vendor/minisearch.js",
    "search-index.js",
    "finder.js",
  ];

  function load(name) {
    return new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = `${ROOT}_static/${name}`;
      script.onload = resolve;
      script.onerror = () => reject(new Error(`${name} could not be loaded`));
      document.head.append(script);
    });
  }

  let loading = null;

  /* The finder, made once. */
  function finder() {
    loading ??= (async () => {
      for (const name of NEEDED) await load(name);
      return new Finder();
    })();
    return loading;
  }

  // -- results

  const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

  /* Words that begin with a found stem. */
  function pattern(terms) {
    const stems = terms
      .filter((term) => term.length > 1)
      .map((term) => escaped(term.length > 4 ? term.replace(/[iy]$/, "") : term));
    return stems.length ? new RegExp(`(?<![a-z])(?:${stems.join("|")})\\w*`, "gi") : null;
  }

  /* A text with its found words in mark elements. */
  function marked(text, found) {
    const parts = document.createDocumentFragment();
    let last = 0;
    for (const match of found ? text.matchAll(found) : []) {
      const mark = document.createElement("mark");
      mark.textContent = match[0];
      parts.append(text.slice(last, match.index), mark);
      last = match.index + match[0].length;
    }
    parts.append(text.slice(last));
    return parts;
  }

  /* The stretch of a text with the most found words in it. */
  function excerpt(text, found, length = 170) {
    const places = found ? [...text.matchAll(found)].map((match) => match.index) : [];
    let start = 0;
    let most = 0;
    for (const place of places) {
      const count = places.filter((p) => p >= place && p < place + length).length;
      if (count > most) [most, start] = [count, place];
    }
    const from = start > 60 ? text.indexOf(" ", start - 50) + 1 : 0;
    const before = from ? "… " : "";
    if (from + length >= text.length) return before + text.slice(from);
    const cut = text.slice(from, from + length + 1);
    const end = cut.lastIndexOf(" "); // a word is shown whole or not at all
    return `${before}${cut.slice(0, end > 0 ? end : length)} …`;
  }

  function address(engine, { entry, terms, message }) {
    const [page, section] = engine.url(entry).split("#");
    const words = message ? [] : terms.filter((term) => term.length > 1).slice(0, 8);
    const query = words.length ? `?highlight=${encodeURIComponent(words.join(" "))}` : "";
    return ROOT + page + query + (section ? `#${section}` : "");
  }

  function item(engine, result) {
    const { entry, terms } = result;
    const found = pattern(terms);
    const line = document.createElement("li");
    const link = document.createElement("a");
    link.href = address(engine, result);
    link.append(marked(entry.title, found));
    const place = document.createElement("span");
    place.className = "search-place";
    place.textContent = entry.whole ? "Page" : entry.pageTitle;
    const text = document.createElement("p");
    text.append(marked(excerpt(entry.text || entry.code, found), found));
    line.append(link, place, text);
    return line;
  }

  function link(page, text) {
    const made = document.createElement("a");
    made.href = ROOT + page;
    made.textContent = text;
    return made;
  }

  /* What to do if nothing was found. */
  function elsewhere() {
    return [
      "Nothing found. Try fewer or other words, or look into the ",
      link("genindex.html", "index"),
      ", the ",
      link("names.html", "names that run"),
      " or the ",
      link("errors/index.html", "error messages"),
      ".",
    ];
  }

  /* Make a form search as one types. */
  function wire(form) {
    const input = form.querySelector("input");
    const list = form.querySelector(".search-found");
    const status = form.querySelector(".search-status");
    let latest = 0;

    async function search() {
      const mine = ++latest;
      const text = input.value.trim();
      if (!text) {
        list.replaceChildren();
        status.textContent = "";
        return;
      }
      try {
        const engine = await finder();
        if (mine !== latest) return;
        const results = engine.find(text);
        list.replaceChildren(...results.map((result) => item(engine, result)));
        const places = `${results.length}${results.length === 20 ? " or more" : ""} places`;
        status.replaceChildren(...(results.length ? [places] : elsewhere()));
      } catch (error) {
        status.textContent = `The search does not work here: ${error.message}`;
      }
    }

    let waiting = null;
    input.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(search, 120);
    });
    input.addEventListener("focus", () => finder().catch(() => {}), { once: true });
    // A pasted traceback has several lines, which the field would run together.
    input.addEventListener("paste", (event) => {
      const text = event.clipboardData?.getData("text") ?? "";
      if (!text.includes("\n")) return;
      event.preventDefault();
      const lines = text.trim().split("\n");
      input.value = lines.findLast((line) => /^[\w.]+(Error|Warning|Exception)\b/.test(line)) ?? lines.at(-1);
      search();
    });
    // Enter opens the first place; without scripts the form leads to the search page.
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      clearTimeout(waiting);
      await search();
      list.querySelector("a")?.click();
    });
    form.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step) return;
      const stops = [input, ...list.querySelectorAll("a")];
      const next = stops.indexOf(document.activeElement) + step;
      stops.at(Math.max(0, Math.min(next, stops.length - 1))).focus();
      event.preventDefault();
    });
    return { input, search };
  }

  // -- words marked on the page that a result opens

  function markWords() {
    const here = new URL(location.href);
    const words = here.searchParams.get("highlight");
    const article = document.querySelector("article.bd-article");
    if (!words || !article) return;
    const found = pattern(words.split(" "));
    const texts = document.createTreeWalker(article, NodeFilter.SHOW_TEXT, (node) =>
      node.parentElement.closest("script, style, svg, math, .program-holder, .ja-lens")
        ? NodeFilter.FILTER_REJECT
        : NodeFilter.FILTER_ACCEPT,
    );
    const hits = [];
    while (texts.nextNode()) if (texts.currentNode.data.match(found)) hits.push(texts.currentNode);
    for (const node of hits) node.replaceWith(marked(node.data, found));
    here.searchParams.delete("highlight");
    try {
      history.replaceState(history.state, "", here);
    } catch {
      // A page read from disk may not change its address in every browser.
    }
    document.getElementById(decodeURIComponent(here.hash.slice(1)))?.scrollIntoView();
  }

  // -- the error finder's own field

  function filterMessages() {
    const table = document.querySelector("#all-messages table");
    if (!table) return;
    const rows = [...table.tBodies[0].rows];
    const field = document.createElement("input");
    field.type = "search";
    field.className = "form-control message-filter";
    field.placeholder = "Paste a message, or some words";
    field.setAttribute("aria-label", "Filter the messages");
    const status = document.createElement("p");
    status.className = "search-status";
    status.setAttribute("role", "status");
    (table.closest(".pst-scrollable-table-container") ?? table).before(field, status);

    const idOf = (row) => row.querySelector("a").hash.slice(1);
    const removed = /(?:module '(jax[\w.]*)' has no attribute|cannot import name) '(\w+)'/;
    let latest = 0;

    /* The rows whose message fits, the likeliest first. */
    function ranked(engine, asked) {
      const words = asked.toLowerCase().split(/\s+/);
      const literal = rows.filter((row) => {
        const said = row.textContent.toLowerCase();
        return words.every((word) => said.includes(word));
      });
      const pasted = engine.messages.find(asked);
      // Not a message: words, which may be other ones than the message has.
      const known = new Set(engine.messages.known.map(({ entry }) => entry));
      const found = pasted.length || literal.length ? pasted : engine.find(asked, { limit: Infinity });
      const ids = found.filter(({ entry }) => known.has(entry)).slice(0, 5).map(({ entry }) => entry.id);
      const byId = new Map(rows.map((row) => [idOf(row), row]));
      return [...new Set([...ids.map((id) => byId.get(id)), ...literal])].filter(Boolean);
    }

    /* A sentence with links to the places that have a removed name, or to the search. */
    function wayOut(engine, asked, isEmpty) {
      const name = removed.exec(asked)?.[2];
      if (name) {
        const has = (e) => !e.whole && e.page.startsWith("older/") && e.code.split(/[ .]/).includes(name);
        const places = engine.entries.filter(has);
        const older = places.length
          ? places.slice(0, 3).flatMap((e, i) => [i ? ", " : "", link(engine.url(e), `${e.pageTitle}: ${e.title}`)])
          : [link("older/index.html", "Reading older JAX")];
        return [`Is ${name} an older name? See `, ...older, ". "];
      }
      if (!isEmpty) return [];
      return ["No message fits. ", link(`search.html?q=${encodeURIComponent(asked)}`, "Search the whole book"), " for it. "];
    }

    async function filter() {
      const mine = ++latest;
      const asked = field.value.trim();
      if (!asked) {
        for (const row of rows) row.hidden = false;
        table.tBodies[0].append(...rows);
        status.replaceChildren();
        return;
      }
      const engine = await finder();
      if (mine !== latest) return;
      const shown = ranked(engine, asked);
      for (const row of rows) row.hidden = !shown.includes(row);
      table.tBodies[0].prepend(...shown);
      const count = shown.length ? [`${shown.length} of ${rows.length} messages`] : [];
      status.replaceChildren(...wayOut(engine, asked, !shown.length), ...count);
    }

    field.addEventListener("input", filter);
  }

  function start() {
    const forms = [...document.querySelectorAll("form.book-search")].map(wire);
    const last = forms.at(-1);
    const query = new URLSearchParams(location.search).get("q");
    const lost = document.querySelector("[data-not-found]");
    if (document.querySelector(".search-page") && last) {
      const path = location.pathname.split("/").slice(-2).join(" ");
      last.input.value = query ?? (lost ? path.replace(/\.html?$/, "").replace(/[-_]+/g, " ").trim() : "");
      last.input.focus();
      if (last.input.value) last.search();
    }
    markWords();
    filterMessages();
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
