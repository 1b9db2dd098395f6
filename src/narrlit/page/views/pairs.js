// Likely versions of one story, decided with keys: same, different, unsure.

import { address, keepInAddress } from "../address.js";
import { download, get, path, put, remove } from "../api.js";
import { announce, joinedLines, make } from "../dom.js";
import { titleOf } from "../labels.js";
import { attempt, button, emptyState, field, linkButton, select, storyLink } from "../parts.js";
import { DECISION_TEXTS, keepReader, readerName } from "../reader.js";
import { alikeText, scaleNote, similarityLine } from "../standing.js";
import { sortableTable } from "../tables.js";
import { counted, number, t, term } from "../texts.js";

/** Decisions with their words and keys. */
const DECISIONS = Object.entries(DECISION_TEXTS).map(([decision, key]) => [decision, key, decision[0]]);
const UNDO = "z";

export async function pairsView({ collection, params, settings, signal }) {
  const reader = params.get("reader") ?? readerName();
  const session = new Session(collection, reader, settings.writable, signal);
  await session.load();
  return session.element;
}

class Session {
  constructor(collection, reader, writable, signal) {
    this.collection = collection;
    this.base = `${path("collections", collection.name)}/pairs`;
    this.reader = reader;
    this.writable = writable;
    this.signal = signal;
    this.undoable = [];
    this.card = make("div", { id: "pair", tabindex: "-1" });
    this.state = make("div", {});
    this.agreement = make("div", {});
    this.decidedPairs = make("details", { class: "decided-pairs" });
    this.element = make("div", {}, make("h1", {}, t("nav.pairs")), make("p", {}, t("pairs.about")),
      this.readerForm(), this.state, this.card, this.results());
    document.addEventListener("keydown", (event) => this.press(event), { signal });
  }

  readerForm() {
    const name = make("input", { id: "reader", value: this.reader, maxlength: 60, autocomplete: "off" });
    name.addEventListener("change", async () => {
      this.reader = name.value.trim() || t("pairs.first_reader");
      keepReader(this.reader);
      keepInAddress({ reader: this.reader });
      this.undoable = [];
      await attempt(this.state, () => this.load());
    });
    this.keys = make("input", { type: "checkbox", id: "keys", checked: localStorage.getItem("keys") !== "off" });
    this.keys.addEventListener("change", () => localStorage.setItem("keys", this.keys.checked ? "on" : "off"));
    return make("div", { class: "tools" }, field(t("pairs.reader"), name),
      make("label", { class: "check" }, this.keys, t("pairs.keys")));
  }

  async load() {
    const query = new URLSearchParams({ reader: this.reader, limit: 20 });
    const answer = await get(`${this.base}?${query}`, this.signal);
    this.most ??= Math.max(...answer.pairs.map((pair) => pair.similarity), 0);
    this.waiting = answer.pairs.filter((pair) => pair.decision === null);
    this.decided = answer.decided;
    this.remaining = answer.remaining;
    this.draw();
    this.showAgreement();
    this.showDecided();
  }

  /** Show how far readers agree, once it is computed; without it, the view is complete all the same. */
  async showAgreement() {
    const answer = await get(`${this.base}/agreement`, this.signal).catch(() => null);
    if (answer === null) return;
    const { readers, pairs, alpha, low, high } = answer;
    const values = { readers: readers.join(", "), alpha: alpha === null ? "" : hundredths(alpha), low: hundredths(low ?? 0), high: hundredths(high ?? 0) };
    const text = alpha === null ? t("pairs.no_agreement") : counted("pairs.agreement", pairs, values);
    this.agreement.replaceChildren(make("h2", {}, term("term.agreement")), make("p", {}, text));
  }

  draw() {
    const all = this.decided + this.remaining;
    const text = t("pairs.progress", { decided: number(this.decided), all: number(all) });
    const bar = make("progress", { max: 1, value: this.decided / Math.max(all, 1), "aria-label": text });
    this.state.replaceChildren(make("p", {}, text), bar);
    const [pair] = this.waiting;
    if (pair) {
      this.card.replaceChildren(...this.pairParts(pair));
      this.card.querySelector(".two").before(scaleNote(this.collection, this.card, this.signal));
    }
    else this.card.replaceChildren(this.nothingLeft());
  }

  nothingLeft() {
    const undo = this.undoable.length ? this.undoButton() : null;
    if (this.decided > 0) return emptyState(t("pairs.all_done"), t("pairs.all_done_text"), undo);
    return emptyState(t("pairs.none"), t("pairs.none_text"), linkButton(t("nav.search"), address(this.collection.name, "search")));
  }

  pairParts(pair) {
    const sides = [pair.left, pair.right].map((story) => make("article", {},
      make("h2", {}, storyLink(this.collection, story)), make("p", { class: "text" }, joinedLines(story.text))));
    const controls = DECISIONS.map(([decision, key, letter]) =>
      button([t(key), " ", make("kbd", {}, letter)], () => this.decide(decision),
        { class: "decision", "data-decision": decision, "aria-keyshortcuts": letter, disabled: !this.writable }));
    return [
      make("p", { class: "actions sticky" }, controls, this.undoable.length ? this.undoButton() : null),
      this.standing(pair),
      make("p", {}, make("a", { href: address(this.collection.name, "compare", [pair.left.id, pair.right.id]) }, t("pairs.links"))),
      make("div", { class: "two" }, sides)];
  }

  /** How alike the two are, among all stories. */
  standing({ left, right, similarity, alike, others }) {
    const [leftTitle, rightTitle] = [left, right].map((story) => titleOf(this.collection, story));
    const values = { others: number(others), left: leftTitle, right: rightTitle, left_closer: number(left.closer), right_closer: number(right.closer) };
    return similarityLine([alikeText(alike), t("standing.closer", values)], similarity, this.most);
  }

  undoButton() {
    return button([t("pairs.undo"), " ", make("kbd", {}, UNDO)], () => this.undo(), { class: "quiet", "data-decision": "undo" });
  }

  press(event) {
    const typing = event.target.closest?.("input, textarea, select");
    if (typing || !this.keys.checked || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
    const decision = DECISIONS.find(([, , letter]) => letter === event.key.toLowerCase());
    if (decision) this.decide(decision[0]);
    else if (event.key.toLowerCase() === UNDO) this.undo();
  }

  /** Save a decision; the next pair is shown once the server has it. */
  async decide(decision) {
    const [pair] = this.waiting;
    if (!pair || this.saving || !this.writable) return;
    await this.save(async () => {
      await put(`${this.base}/decisions`, { left: pair.left.id, right: pair.right.id, decision, reader: this.reader });
      this.waiting.shift();
      this.undoable.push(pair);
      this.decided += 1;
      this.remaining -= 1;
      announce(t("pairs.saved", { decision: t(DECISIONS.find(([name]) => name === decision)[1]) }));
      if (this.waiting.length === 0 && this.remaining > 0) await this.load();
    });
  }

  async undo() {
    if (this.undoable.length === 0 || this.saving) return;
    await this.save(async () => {
      const pair = this.undoable.at(-1);
      await remove(`${this.base}/decisions`, { left: pair.left.id, right: pair.right.id, reader: this.reader });
      this.undoable.pop();
      this.waiting = [pair, ...this.waiting.filter((each) => each.left.id !== pair.left.id || each.right.id !== pair.right.id)];
      this.decided -= 1;
      this.remaining += 1;
      announce(t("pairs.undone"));
    });
  }

  async save(action) {
    this.saving = true;
    try {
      if (await attempt(this.card, async () => (await action(), true))) {
        this.draw();
        this.card.focus({ preventScroll: true });
        this.showAgreement();
        this.showDecided();
      }
    } finally {
      this.saving = false;
    }
  }

  /** The pairs that this reader has decided, also in earlier sessions; a decision can be changed or taken back. */
  async showDecided() {
    const decided = await get(`${this.base}/decided?${new URLSearchParams({ reader: this.reader })}`, this.signal).catch(() => null);
    if (decided === null) return;
    const choices = [...DECISIONS.map(([decision, key]) => [decision, t(key)]), ["", t("pairs.take_back")]];
    const set = (pair) => (decision) => this.save(async () => {
      const body = { left: pair.left.id, right: pair.right.id, reader: this.reader };
      if (decision) await put(`${this.base}/decisions`, { ...body, decision });
      else await remove(`${this.base}/decisions`, body);
      this.undoable = [];
      await this.load();
    });
    const title = (side) => (pair) => titleOf(this.collection, pair[side]);
    const columns = [
      { name: t("pairs.left"), value: title("left"), cell: (pair) => storyLink(this.collection, pair.left) },
      { name: t("pairs.right"), value: title("right"), cell: (pair) => storyLink(this.collection, pair.right) },
      { name: t("pairs.decision"), value: (pair) => pair.decision, cell: (pair) => select(choices, pair.decision, set(pair),
        { "aria-label": `${title("left")(pair)} – ${title("right")(pair)}`, disabled: !this.writable }) },
    ];
    const table = decided.length ? sortableTable(columns, decided) : make("p", {}, t("pairs.none_decided"));
    this.decidedPairs.replaceChildren(make("summary", {}, counted("pairs.decided", decided.length)), make("div", { class: "wide" }, table));
  }

  results() {
    const place = make("section", {}, this.decidedPairs, this.agreement, make("h2", {}, t("pairs.table")), make("p", {}, t("pairs.table_text")));
    const save = (kind, format) => () => attempt(place, () => download("GET", `${this.base}/table?kind=${kind}&format=${format}`));
    place.append(make("p", { class: "actions" },
      button(t("export.versions"), save("groups", "csv")),
      button(t("export.triples"), save("triples", "jsonl")),
      button(t("export.decisions"), save("decisions", "csv"))));
    return place;
  }
}

const hundredths = (value) => number(Math.round(value * 100) / 100);
