// Values proposed for stories that lack one in a column, with the stories that speak for each.

import { address } from "../address.js";
import { download, get, getComputed, path, put, remove } from "../api.js";
import { announce, make, pause } from "../dom.js";
import { titleOf } from "../labels.js";
import { attempt, button, emptyState, errorBox, field, linkButton, progressBar, select, storyLink } from "../parts.js";
import { sortableTable } from "../tables.js";
import { counted, number, percent, t, term } from "../texts.js";

/** Stories that are listed at once. */
const SHOWN = 50;
/** Largest probability that is shown: a rounded one would be 100 %, which no test can show. */
const MOST_SURE = 0.99;

export async function catalogView({ collection, params, settings, signal }) {
  const columns = collection.columns.filter((column) => column.distinct > 1 && column.values[0]?.count > 1);
  const view = make("div", {}, make("h1", {}, t("nav.catalog")), make("p", {}, t("catalog.about")));
  if (columns.length === 0) {
    view.append(emptyState(t("catalog.no_column"), t("catalog.no_column_text"), linkButton(t("nav.collections"), "#/")));
    return view;
  }
  const names = columns.map((column) => column.name);
  const column = names.includes(params.get("column")) ? params.get("column") : names[0];
  const open = (chosen) => (location.hash = address(collection.name, "catalog", [], { column: chosen }));
  view.append(make("div", { class: "tools" },
    field(t("catalog.column"), select(names.map((name) => [name, name]), column, open, { id: "column" }))));
  const place = make("div", {}, make("p", {}, t("catalog.computing")), progressBar(null, t("catalog.computing")));
  view.append(place);
  draw(place, collection, column, settings, signal);
  return view;
}

async function draw(place, collection, column, settings, signal) {
  const base = `${path("collections", collection.name)}/catalog`;
  try {
    const catalog = await getComputed(`${base}?column=${encodeURIComponent(column)}`, signal, pause);
    const decided = make("details", { class: "decided-values" });
    const showDecided = () => drawDecided(decided, collection, column, base, settings, signal);
    place.replaceChildren(accuracy(catalog), proposals(collection, catalog, base, settings, showDecided), decided, filledTable(base, column));
    showDecided();
  } catch (error) {
    if (!signal.aborted) place.replaceChildren(errorBox(error));
  }
}

/** How often the proposals are right, where the value is known. */
function accuracy({ column, accuracy: measured, baseline, most_frequent: mostFrequent }) {
  const [low, high] = measured.interval;
  return make("section", { class: "panel" },
    make("p", { class: "finding" }, t("catalog.accuracy", { correct: number(measured.correct), n: number(measured.n), column, share: percent(measured.accuracy) })),
    make("p", {}, term("term.accuracy"), " ", t("catalog.interval", { low: percent(low), high: percent(high) }), " ",
      t("catalog.baseline", { value: mostFrequent, share: percent(baseline) })));
}

/** The values that were accepted or rejected, also in earlier sessions, each with a button that takes it back. */
async function drawDecided(place, collection, column, base, settings, signal) {
  const list = await get(`${base}/decided?${new URLSearchParams({ column })}`, signal).catch(() => []);
  const undo = (story) => button(t("catalog.undo"), () => attempt(place, async () => {
    await remove(`${base}/decisions`, { id: story.id, column });
    announce(t("catalog.undone"));
    dispatchEvent(new Event("hashchange"));
  }), { class: "quiet", disabled: !settings.writable, "aria-label": `${t("catalog.undo")}: ${titleOf(collection, story)}` });
  const columns = [
    { name: t("work.story"), value: ({ story }) => titleOf(collection, story), cell: ({ story }) => storyLink(collection, story) },
    { name: column, value: ({ value }) => value ?? t("catalog.none_right") },
    { name: t("catalog.undo"), value: () => 0, cell: ({ story }) => undo(story) },
  ];
  place.replaceChildren(make("summary", {}, counted("catalog.decided", list.length)),
    make("div", { class: "wide" }, sortableTable(columns, list)));
}

/** The stories with the values that were accepted, as a file. */
function filledTable(base, column) {
  const place = make("section", {}, make("h2", {}, t("catalog.table")), make("p", {}, t("catalog.table_text")));
  const save = (format) => () => attempt(place, () =>
    download("GET", `${base}/table?${new URLSearchParams({ column, format })}`));
  place.append(make("p", { class: "actions" },
    button(t("export.csv"), save("csv")), button(t("export.xlsx"), save("xlsx"))));
  return place;
}

function proposals(collection, catalog, base, settings, showDecided) {
  const { proposals: list, column } = catalog;
  if (list.length === 0) return emptyState(t("catalog.none", { column }), t("catalog.none_text", { column }));
  const cards = list.map((proposal) => proposalCard(collection, proposal, column, base, settings, showDecided));
  const shown = make("ul", { class: "cards proposals" }, cards.slice(0, SHOWN));
  const more = button(t("catalog.more"), () => {
    shown.append(...cards.slice(SHOWN));
    more.remove();
  });
  return make("section", {}, make("h2", {}, counted("catalog.count", list.length, { column })),
    shown, cards.length > SHOWN ? more : null);
}

function proposalCard(collection, proposal, column, base, settings, showDecided) {
  const title = titleOf(collection, proposal);
  const state = make("p", { class: "banner", hidden: true });
  const card = make("li", {}, make("h3", {}, storyLink(collection, proposal)), state);
  const undo = button(t("catalog.undo"), () => attempt(card, async () => {
    await remove(`${base}/decisions`, { id: proposal.id, column });
    card.classList.remove("decided");
    state.hidden = true;
    state.replaceChildren();
    card.querySelector("button:not(:disabled)")?.focus();
    announce(t("catalog.undone"));
    showDecided();
  }), { class: "quiet", "aria-label": `${t("catalog.undo")}: ${title}` });
  const decide = (value, accepted, text) => attempt(card, async () => {
    await put(`${base}/decisions`, { id: proposal.id, column, value, accepted });
    card.classList.add("decided");
    state.hidden = false;
    state.replaceChildren(text, " ", undo);
    announce(text);
    showDecided();
  });
  card.append(...proposal.values.map((each) => valueRow(collection, proposal, each, decide, settings)));
  card.append(make("p", { class: "actions" }, button(t("catalog.reject"),
    () => decide(null, false, t("catalog.rejected")), { class: "quiet", disabled: !settings.writable, "aria-label": `${t("catalog.reject")}: ${title}` })));
  return card;
}

function valueRow(collection, proposal, { value, probability, stories }, decide, settings) {
  const accept = button(t("catalog.accept", { value }), () => decide(value, true, t("catalog.accepted", { value })),
    { disabled: !settings.writable, "aria-label": `${t("catalog.accept", { value })}: ${titleOf(collection, proposal)}` });
  const speaking = stories.map((story) => make("li", {}, storyLink(collection, story), ` · `,
    make("a", { href: address(collection.name, "compare", [proposal.id, story.id]), "aria-label": t("story.compare_with", { title: titleOf(collection, story) }) }, t("action.compare"))));
  return make("div", { class: "value" },
    make("p", { class: "similarity" }, make("b", {}, value), " ", make("i", { styles: { "--share": probability }, "aria-hidden": "true" }),
      ` ${percent(Math.min(probability, MOST_SURE))} `, term("term.probability"), " ", accept),
    make("details", {}, make("summary", {}, counted("catalog.speaking", stories.length)), make("ul", {}, speaking)));
}
