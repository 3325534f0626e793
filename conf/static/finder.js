/* What the search box does with words: no page is touched here.
 *
 * MiniSearch ranks. Around it stand three things of this book's own: words that mean the
 * same, words that say nothing, and messages, which are compared with those that the
 * pages raise after all that differs from program to program has been taken out. */
(() => {
  "use strict";

  const SILENT = new Set(
    ("a about an and any are as at be by can cannot can't could did do does doesn don for from get " +
      "getting give given gives got had has have how i if in inside into is isn it its jax jnp just like me my no of on " +
      "only or our so t than that the their them then there they this to too turn use used using very " +
      "want was way within we what when where which why will with would you your s").split(" "),
  );

  /* Said in several words, meant as one: what a query says, and what is looked for too. */
  const PHRASES = [
    [/\b(out of memory|oom|ran out of (gpu )?memory|memory exhausted)\b/g, "oom memory resource_exhausted"],
    [/\b(multi|many|several|multiple)[- ]?(host|node|machine|process)(s|es)?\b/g, "processes distributed"],
    [/\b(fake|virtual|simulated|emulated?)[- ](cpu )?(devices?|tpus?|gpus?)\b/g, "eight devices host_platform_device_count jax_num_cpu_devices"],
    [/\bxla_force_host_platform_device_count\b/g, "jax_num_cpu_devices devices"],
    [/\b(without|avoid(ing)?|stop|prevent(ing)?|reduce|too many|every call|each time|keeps?)\b(?=.*\b(re-?)(compil|trac))/g, "retrace"],
    [/\w\[[^\]]*\]\s*[-+*\/]?=(?!=)/g, "assignment immutable at set"],
    [/\b(slower|faster) than (numpy|python|pytorch|torch|numba)\b/g, "overhead small timing compiling"],
    [/\b(re-?compil\w*|re-?trac\w*)/g, "retracing retrace again"],
    [/\bmnist\b/g, "handwritten digits"],
    [/\b(conjugate gradients?|linear solve)\b/g, "cg linear system"],
    [/\b(cumulative|prefix) sums?\b/g, "cumsum associative_scan"],
    [/\bparallel (prefix|scan)\b/g, "associative_scan order matter"],
    [/\b(save|load|restore|write).*\b(model|parameters|weights|checkpoint)|checkpoint.*\b(disk|file)\b/g, "checkpoint saved orbax"],
    [/\b(call|run) (a )?(python|host|numpy) (function|code)/g, "callback pure_callback io_callback"],
    [/\b(perfetto|tensorboard|xprof|trace viewer)\b/g, "profiler recording run"],
    [/\b(class )?methods?\b.*\bself\b|\bjit.*\bmethods?\b/g, "self method object"],
    [/\b(multi|multiple|many|several)[- ]?(gpu|tpu|device)s?\b/g, "devices sharding"],
    [/\b(per[- ]example|per[- ]sample) gradients?\b/g, "vmap grad batch"],
    [/\bside[- ]effects?\b/g, "impure purity effect"],
    [/\bin[- ]?place\b/g, "at set immutable update"],
    [/\b(64[- ]?bit|double precision|float ?64|x64)\b/g, "float64 jax_enable_x64 precision"],
    [/\b(32[- ]?bit|single precision)\b/g, "float32"],
    [/\bmixed precision\b/g, "bfloat16 precision"],
    [/\b(for|python) loops?\b/g, "loop fori_loop scan"],
    [/\bwhile loops?\b/g, "while_loop loop"],
    [/\bif (statements?|else|conditions?)|\bif[- ]else\b/g, "cond where control flow branch"],
    [/\b(slower(?! than (numpy|python|pytorch|torch|numba))|speed up|speed|slow|faster|too slow|performance)\b/g, "fast performance timing time"],
    [/\b(benchmark(ing)?|time it|timeit|timing|how long)\b/g, "timing measure block_until_ready"],
    [/\bdata[- ]?parallel(ism)?\b/g, "data parallel sharding batch devices"],
    [/\b(model|tensor)[- ]?parallel(ism)?\b/g, "sharding mesh axis"],
    [/\bgradient checkpoint(ing)?\b/g, "checkpoint remat memory"],
    [/\bhyper-?parameters?\b/g, "static arguments"],
    [/\brandom (seed|state|number generator)\b/g, "key random"],
    [/\bsame (random )?(numbers?|values?|draws?)\b/g, "one key use twice"],
    [/\bkeys? (in|inside|for) .*\b(loop|steps?)\b/g, "key every step split fold_in"],
    [/\bappend(ing)? to (a )?list\b/g, "outside purity side effect"],
    [/\bdead code\b/g, "removes unused"],
    [/\bstop[- ]?gradients?\b/g, "stop_gradient"],
    [/\bcustom (derivatives?|gradients?)\b/g, "custom_vjp custom_jvp"],
    [/\bdynamic shapes?\b/g, "shape size static"],
    [/\bfirst call\b/g, "compile"],
    [/\b(most|all|much) (of )?(the )?time\b|\bhotspots?\b|\bbottlenecks?\b/g, "profiling operations"],
    [/\bwithout (running|executing|a run)\b|\bbefore running\b/g, "lower ahead shapes"],
    [/\b(upgrad\w*|new version|newer version|broke|no longer (works|exists)|removed from)\b/g, "older names releases"],
  ];

  /* Each line: words that stand for one another. */
  const ALIKE = [
    "compile compilation retrace",
    "gradient grad derivative differentiate differentiation autodiff backprop backpropagation",
    "vmap vectorize vectorization batch batching batched",
    "pmap shard_map sharding parallel",
    "mutate mutation modify assign assignment immutable immutability update overwrite",
    "seed key prng rng random",
    "nan nans inf",
    "pytree tree",
    "profile profiler profiling",
    "debug debugging debugger breakpoint",
    "print printing logging",
    "cuda gpu accelerator",
    "dtype type precision",
    "hlo stablehlo lowering",
    "multihost multiprocess distributed processes",
    "cache cached caching",
    "serialize export serialization",
    "remat checkpoint",
    "hessian jacobian",
    "torch pytorch",
    "jaxpr jaxprs",
    "kernel pallas triton",
    "oom memory",
    "loop loops fori_loop while_loop scan",
    "branch cond conditional",
    "clip clamp",
    "hash hashable unhashable",
    "concrete tracer traced",
    "device devices placement",
    "async asynchronous dispatch",
    "optimizer optax sgd adam",
    "leak leaked escaped",
    "numpy np",
    "constant folding",
    "flop flops roofline cost",
  ];

  const stemmer = typeof EnglishStemmer === "function" ? new EnglishStemmer() : null;
  const stems = new Map();

  /* Words whose stems are those of others that they have nothing to do with: vector and
   * vectorizing, the transformations of functions and the network named transformer. */
  const apart = (word) => /^(vectori[sz]|transformer)/.exec(word)?.[1].replace("ris", "riz") ?? null;

  function stem(word) {
    if (!stems.has(word)) {
      stems.set(word, apart(word) ?? (stemmer && /^[a-z]+$/.test(word) ? stemmer.stemWord(word) : word));
    }
    return stems.get(word);
  }

  const split = new Map();

  /* A name counts as a whole and by its parts: `shard_map`, `shard`, `map`. */
  function parts(whole) {
    if (!split.has(whole)) {
      const lower = whole.toLowerCase();
      const pieces = whole
        .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
        .toLowerCase()
        .split("_")
        .filter((piece) => piece.length > 1);
      split.set(whole, pieces.length > 1 ? [lower, ...pieces] : [lower]);
    }
    return split.get(whole);
  }

  const words = (text) => (text.match(/[A-Za-z0-9_]+/g) ?? []).flatMap(parts);

  /* What a word is looked up by; none for a word that says nothing. */
  function meaning(word) {
    if (SILENT.has(word) || word.length < 2) return null;
    return stem(word.replace(/is(e|es|ed|ing|ation)$/, "iz$1"));
  }

  const alike = new Map();
  for (const line of ALIKE) {
    const group = line.split(" ").map(stem);
    for (const word of group) {
      alike.set(word, new Set([...(alike.get(word) ?? []), ...group]));
    }
  }

  // -- messages

  const CLASS = /^\s*(?:[\w.]+\.)?(\w*(?:Error|Warning|Exception|Operation))\b:?\s*/;

  /* What a message says in every program: no numbers, shapes, dtypes, names, addresses. */
  function said(text) {
    const tokens = text
      .replace(CLASS, "")
      .replace(/0x[0-9a-f…]+/gi, " ")
      .replace(/\b[a-z]+\d+\[[^\]]*\]|\bShapedArray\([^)]*\)+/g, " ")
      .replace(/\b(?:u?int|b?float|complex|bool)\d*\w*/g, " ")
      .replace(/[([]\s*[\d\s,.x]*[)\]]/g, " ")
      .replace(/\b[\d.]+[a-z]?\b/g, " ")
      .toLowerCase()
      .match(/[a-z_]{2,}/g);
    return tokens ?? [];
  }

  const pairs = (tokens) => tokens.slice(1).map((token, i) => `${tokens[i]} ${token}`);

  class Messages {
    constructor(entries) {
      this.known = entries.map((entry) => {
        const heading = said(entry.title);
        return { entry, kind: CLASS.exec(entry.title)[1], heading, full: said(entry.messages) };
      });
      this.seen = new Map();
      for (const { heading, full } of this.known) {
        const all = [...heading, ...full, ...pairs(heading), ...pairs(full)];
        for (const token of new Set(all)) {
          this.seen.set(token, (this.seen.get(token) ?? 0) + 1);
        }
      }
    }

    weight(token) {
      return Math.log(1 + this.known.length / (this.seen.get(token) ?? this.known.length));
    }

    /* How much of `wanted` is in `given`, by weight: from 0 to 1. */
    share(wanted, given) {
      let all = 0;
      let found = 0;
      for (const token of new Set(wanted)) {
        const weight = this.weight(token);
        all += weight;
        if (given.has(token)) found += weight;
      }
      return [all ? found / all : 0, found];
    }

    /* Entries whose message the text is, the likeliest first. */
    find(text) {
      const head = text.trim().split("\n").findLast((line) => CLASS.test(line)) ?? text;
      const kind = CLASS.exec(head)?.[1] ?? null;
      const tokens = said(kind ? text.slice(text.indexOf(head)) : text);
      if (!kind && tokens.length < 3) return [];
      const given = new Set([...tokens, ...pairs(tokens)]);
      const found = [];
      for (const known of this.known) {
        const [ofHeading, mass] = this.share(
          [...known.heading, ...pairs(known.heading)],
          given,
        );
        const full = new Set([...known.full, ...pairs(known.full), ...known.heading, ...pairs(known.heading)]);
        const [ofQuery] = this.share([...given], full);
        const sameKind = kind !== null && known.kind === kind;
        const score = ofHeading + 1.2 * ofQuery + (sameKind ? 0.25 : 0) + 0.004 * mass;
        const enough = kind
          ? ofQuery > 0.5 || ofHeading > 0.6
          : ofHeading > 0.75 || (tokens.length > 4 && ofQuery > 0.8);
        if (enough) found.push({ entry: known.entry, score });
      }
      return found.sort((a, b) => b.score - a.score);
    }
  }

  // -- the whole

  /* A lesson comes before the pages that list and repeat. */
  function standing({ page, id }) {
    if (/^(what-to-remember|exercises|where-next)/.test(id)) return 0.5;
    if (page.startsWith("errors/")) return 0.5;
    if (page === "releases" || page === "index") return 0.3;
    if (page.endsWith("/index")) return 0.5;
    return page.startsWith("older/") || page === "cheat-sheet" ? 0.7 : 1;
  }

  class Finder {
    constructor(pages) {
      this.entries = [];
      for (const [page, pageTitle, rows] of pages) {
        rows.forEach(([id, title, text, code, terms, messages], i) => {
          const nth = this.entries.length;
          const whole = i === 0;
          this.entries.push({ nth, page, pageTitle, id, title, text, code, terms, messages, whole });
        });
      }
      const raised = (e) => !e.whole && e.page.startsWith("errors/") && CLASS.test(e.title);
      this.messages = new Messages(this.entries.filter(raised));
      this.index = new MiniSearch({
        fields: ["title", "name", "terms", "messages", "text", "code", "pageTitle"],
        idField: "nth",
        extractField: (entry, field) =>
          field === "name" ? (entry.whole ? `${entry.title} ${entry.page}` : "") : entry[field],
        tokenize: words,
        processTerm: meaning,
      });
      this.index.addAll(this.entries);
    }

    url(entry) {
      return `${entry.page}.html${entry.whole ? "" : `#${entry.id}`}`;
    }

    /* The words of a query with their weights: its own, and those that mean the same. */
    meant(text) {
      const lower = text.toLowerCase();
      const own = words(lower).map(meaning).filter(Boolean);
      const weights = new Map(own.map((word) => [word, 1]));
      const add = (word, weight) => {
        if (word && !weights.has(word)) weights.set(word, weight);
      };
      for (const [phrase, more] of PHRASES) {
        if (lower.search(phrase) >= 0) for (const word of words(more)) add(meaning(word), 0.6);
      }
      for (const word of own) for (const other of alike.get(word) ?? []) add(other, 0.35);
      return { own, weights };
    }

    /* What was found, by how much of the query it meets and where in the book it stands. */
    weighed(ranked, own) {
      const wanted = new Set(own);
      const best = new Map();
      const found = ranked.map((result) => {
        const entry = this.entries[result.id];
        const met = result.queryTerms.filter((word) => wanted.has(word)).length;
        const share = wanted.size ? met / wanted.size : 1;
        const score = result.score * (0.35 + share) * standing(entry);
        const of = best.get(entry.page) ?? { most: 0, sum: 0 };
        best.set(entry.page, { most: Math.max(of.most, score), sum: of.sum + score });
        return { entry, score, terms: result.terms };
      });
      for (const each of found) {
        if (!each.entry.whole) continue;
        const { most, sum } = best.get(each.entry.page);
        each.score += standing(each.entry) * (0.4 * most + 0.05 * sum);
        if (own.length && own.every((word) => this.named(each.entry).has(word))) each.score *= 2;
      }
      return found;
    }

    /* The words that a page goes by. */
    named(entry) {
      entry.named ??= new Set(words(`${entry.page.split("/").at(-1).replaceAll("-", "_")} ${entry.title}`).map(meaning));
      return entry.named;
    }

    /* The entries that answer, best first, each with the words found in it. */
    find(text, { typing = false, limit = 20 } = {}) {
      const first = this.messages.find(text);
      const { own, weights } = this.meant(text);
      if (!weights.size && !first.length) return [];
      const every = [...weights.keys()];
      const last = own.at(-1);
      const ranked = this.index.search(every.join(" "), {
        tokenize: (joined) => joined.split(" "),
        processTerm: (word) => word,
        boost: { title: 5, name: 4, terms: 3, messages: 1.5, pageTitle: 1.6, text: 1, code: 0.7 },
        boostTerm: (word) => weights.get(word) ?? 1,
        fuzzy: (word) => (own.includes(word) && word.length > 4 ? Math.min(2, word.length / 3.4 | 0) : false),
        prefix: (word) => typing && word === last && word.length > 2,
        weights: { fuzzy: 0.25, prefix: 0.5 },
        bm25: { k: 1.2, b: 0.5, d: 0.5 },
      });
      const seen = new Set(first.map(({ entry }) => entry));
      const rest = this.weighed(ranked, own)
        .filter(({ entry }) => !seen.has(entry))
        .sort((a, b) => b.score - a.score);
      const shown = [...first.slice(0, 3).map((each) => ({ ...each, terms: own, message: true })), ...rest];
      return shown.slice(0, limit);
    }
  }

  globalThis.Finder = Finder;
  globalThis.finderStem = stem;
})();
