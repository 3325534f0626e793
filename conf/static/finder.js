/* What the search box does with words: no page is touched here.
 *
 * MiniSearch ranks. Around it are three things that it does not do: words of readers are
 * looked for in the book's words, slips of the keyboard are corrected, and messages are
 * compared with those that the pages raise, without what differs between programs. */
(() => {
  "use strict";

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

  /* A word as it is looked up: its stem. */
  const looked = (word) => stem(word.replace(/is(e|es|ed|ing|ation)$/, "iz$1"));

  /* What readers say and what the book says: `conf/search-words.txt`, as the build read it. */
  class Words {
    constructor({ silent, pairs, alike }) {
      this.silent = new Set(silent);
      this.pairs = pairs.map(([said, meant]) => [said.map((phrase) => this.stems(phrase)), this.stems(meant)]);
      this.alike = new Map();
      for (const group of alike.map((line) => line.map(looked))) {
        for (const word of group) this.alike.set(word, [...(this.alike.get(word) ?? []), ...group]);
      }
      this.known = new Set([silent, pairs, alike].flat(3).flatMap(words));
    }

    /* An assignment to a part or in place is a word too: `+=`. */
    stems(text) {
      const assigned = /[-+*\/\]]\s*=(?!=)/.test(text) ? ["+="] : [];
      return [...words(text).map(looked), ...assigned];
    }

    meaning(word) {
      return this.silent.has(word) || word.length < 2 ? null : looked(word);
    }

    /* What else a question may mean, by its stems. */
    also(stems) {
      const given = new Set(stems);
      const met = this.pairs.filter(([said]) => said.some((phrase) => phrase.every((word) => given.has(word))));
      return met.flatMap(([, meant]) => meant);
    }
  }

  /* How many slips of the keyboard lie between two words: a letter more, less or other,
   * or two neighbors exchanged. */
  function slips(a, b, most) {
    if (Math.abs(a.length - b.length) > most) return most + 1;
    let [before, row] = [[], Array.from({ length: b.length + 1 }, (_, i) => i)];
    for (let i = 1; i <= a.length; i++) {
      const next = [i];
      for (let j = 1; j <= b.length; j++) {
        const same = a[i - 1] === b[j - 1] ? 0 : 1;
        next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + same);
        const exchanged = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
        if (exchanged) next[j] = Math.min(next[j], before[j - 2] + 1);
      }
      [before, row] = [row, next];
      if (Math.min(...row) > most) return most + 1;
    }
    return row[b.length];
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
      // The first line with a class below the frames: a message may end with another.
      const last = text.split("Traceback (most recent").at(-1);
      const head = last.split("\n").find((line) => CLASS.test(line)) ?? text;
      const kind = CLASS.exec(head)?.[1] ?? null;
      const tokens = said(kind ? last.slice(last.indexOf(head)) : text);
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

  /* A lesson comes before the pages that list and repeat, and the path before all. */
  function standing({ page, id }) {
    if (/^(what-to-remember|exercises|exercise-\d|where-next)/.test(id)) return 0.5;
    if (page === "releases" || page === "index" || page === "names") return 0.3;
    if (page.startsWith("errors/") || page.endsWith("/index")) return 0.5;
    if (page.startsWith("older/") || page === "cheat-sheet") return 0.7;
    return page.startsWith("learn/") ? 1.2 : 1;
  }

  class Finder {
    constructor(pages = window.SEARCH_PAGES, said = window.SEARCH_WORDS) {
      this.words = new Words(said);
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
      this.spelled = new Map();
      for (const word of this.words.known) this.spelled.set(word, 1);
      this.index = new MiniSearch({
        fields: ["title", "name", "terms", "messages", "text", "code", "pageTitle"],
        idField: "nth",
        extractField: (entry, field) =>
          field === "name" ? (entry.whole ? `${entry.title} ${entry.page}` : "") : entry[field],
        tokenize: (text) => words(text).map((word) => (this.spelled.set(word, (this.spelled.get(word) ?? 0) + 1), word)),
        processTerm: looked,
      });
      this.index.addAll(this.entries);
      this.stems = new Set([...this.spelled.keys()].map(looked));
    }

    url(entry) {
      return `${entry.page}.html${entry.whole ? "" : `#${entry.id}`}`;
    }

    /* A text with each word that the book does not have as the nearest one that it has. */
    corrected(text) {
      return text.replace(/[a-z0-9_]{3,}/g, (word) => {
        if (this.spelled.has(word) || this.stems.has(looked(word))) return word;
        if (text.endsWith(word) && [...this.spelled.keys()].some((other) => other.startsWith(word))) return word;
        const most = word.length < 8 ? 1 : 2;
        let [best, least, often] = [word, most + 1, 0];
        for (const [other, count] of this.spelled) {
          if (word.length < 5 && other.length !== word.length) continue;
          const far = slips(word, other, Math.min(most, least));
          if (far < least || (far === least && far <= most && count > often)) [best, least, often] = [other, far, count];
        }
        return best;
      });
    }

    /* The words of a query with their weights: its own, and those that mean the same. */
    meant(text) {
      const stems = this.words.stems(text);
      const telling = words(text).map((word) => this.words.meaning(word)).filter(Boolean);
      const also = this.words.also(stems);
      const own = telling.length || also.length ? telling : stems; // `at` alone says something
      const weights = new Map(own.map((word) => [word, 1]));
      const add = (word, weight) => weights.has(word) || weights.set(word, weight);
      for (const word of also) add(word, 0.6);
      for (const word of own) for (const other of this.words.alike.get(word) ?? []) add(other, 0.35);
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
        best.set(entry.page, Math.max(best.get(entry.page) ?? 0, score));
        return { entry, score, terms: result.terms };
      });
      for (const each of found) {
        if (!each.entry.whole) continue;
        each.score += standing(each.entry) * 0.4 * best.get(each.entry.page);
        if (this.isAbout(each.entry, own)) each.score += 1e6 * standing(each.entry);
      }
      return found.sort((a, b) => b.score - a.score);
    }

    /* Whether a page goes by just these words: it is the first answer to a bare name. */
    isAbout({ page }, own) {
      const name = words(page.split("/").at(-1).replaceAll("-", " ")).map(looked);
      return own.length === name.length && own.every((word) => name.includes(word));
    }

    /* The entries that answer, best first, each with the words found in it. */
    find(asked, { limit = 20 } = {}) {
      const first = this.messages.find(asked);
      const lower = asked.toLowerCase();
      // A traceback has many words of the reader's own program: they are no slips.
      const { own, weights } = this.meant(first.length ? lower : this.corrected(lower));
      if (!weights.size && !first.length) return [];
      const last = own.at(-1);
      const ranked = this.index.search([...weights.keys()].join(" "), {
        tokenize: (joined) => joined.split(" "),
        processTerm: (word) => word,
        boost: { title: 5, name: 4, terms: 3, messages: 1.5, pageTitle: 1.6, text: 1, code: 0.7 },
        boostTerm: (word) => weights.get(word) ?? 1,
        prefix: (word) => word === last && word.length > 2, // it may be half typed
        weights: { prefix: 0.5 },
        bm25: { k: 1.2, b: 0.5, d: 0.5 },
      });
      const seen = new Set(first.map(({ entry }) => entry));
      const rest = this.weighed(ranked, own).filter(({ entry }) => !seen.has(entry));
      const shown = [...first.slice(0, 3).map((each) => ({ ...each, terms: own, message: true })), ...rest];
      return shown.slice(0, limit);
    }
  }

  globalThis.Finder = Finder;
})();
