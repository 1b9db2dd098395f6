// Two stories: their strongest links first, or as a parallel edition, in which linked passages share a row.

import { address, keepInAddress } from "../address.js";
import { download, get, path, post, put, remove } from "../api.js";
import { carried } from "../carried.js";
import { announce, make } from "../dom.js";
import { titleOf } from "../labels.js";
import { arrowOf, linkTable, shareText } from "../links.js";
import { parallelRows } from "../parallel.js";
import { attempt, button, emptyState, field, linkButton, select, storyLink } from "../parts.js";
import { DECISION_TEXTS, readerName } from "../reader.js";
import { alikeText, scaleNote, similarityLine } from "../standing.js";
import { chosenStories } from "../selection.js";
import { sortableTable } from "../tables.js";
import { counted, decimals, number, percent, t, term } from "../texts.js";

/** The measure whose similarities are sums of links. */
const MEASURE = "passages";
const ASPECTS = { theme: "aspect.theme", action: "aspect.action", outcome: "aspect.outcome" };

export async function compareView({ collection, ids, params, settings, signal }) {
  if (ids.length < 2) return noPair(collection);
  if (ids.length > 2) return tripleView({ collection, ids, params, signal });
  const compared = await comparisonOf(collection, ids, signal);
  const heading = make("h1", {}, t("compare.title", { left: compared.titles[0], right: compared.titles[1] }));
  if (!compared.explanation.closer) return unlinked(collection, compared.stories, heading, compared.explanation);
  const view = make("div", {}, heading, ...pairParts(collection, compared, params));
  view.querySelector(".similarity").after(scaleNote(collection, view, signal));
  if (settings.writable) view.querySelector(".pictures").append(decisionField(collection, ids, signal));
  return view;
}

/** Two stories with their titles, and the links between them. */
async function comparisonOf(collection, ids, signal) {
  const body = { left: { id: ids[0] }, right: { id: ids[1] } };
  const explanation = await post(`${path("collections", collection.name)}/explain`, body, signal);
  const stories = [explanation.left, explanation.right].map(({ title, metadata }, side) => ({ id: ids[side], title, metadata }));
  return { stories, explanation, titles: stories.map((story) => titleOf(collection, story)) };
}

/** What is said of two stories, and their links. */
function pairParts(collection, { stories, explanation, titles }, params) {
  const { closer, similarity, hubness } = explanation;
  const values = { others: number(explanation.others), left: titles[0], right: titles[1], left_closer: number(closer[0]), right_closer: number(closer[1]) };
  const finding = explanation.alike ? t("compare.finding", { model: collection.model, alike: alikeText(explanation.alike) }) : null;
  return [
    finding ? make("p", { class: "finding" }, finding) : null,
    make("p", {}, t(hubness ? "standing.closer" : "standing.closer_tales", values)),
    similarityLine([""], similarity, similarity),
    hubness ? make("p", { class: "meta" }, t("compare.terms", termsOf(explanation))) : null,
    collection.measure === MEASURE ? null : make("p", { class: "meta" }, t("compare.measure", { measure: collection.measure })),
    make("p", {}, counted("compare.links", explanation.links.length), " ", term("term.share"), ". ", term("term.direction"), "."),
    ...pictures(collection, stories, titles, explanation, params),
    deletionPart(explanation.deletion), viewsPart(explanation.views, titles)].filter(Boolean);
}

/** Why a story is closer to one of two others: its passages by what they add to both similarities, and both pairs. */
async function tripleView({ collection, ids: [anchor, ...others], params, signal }) {
  const pairs = await Promise.all(others.slice(0, 2).map((id) => comparisonOf(collection, [anchor, id], signal)));
  const [first, second] = pairs.map((pair) => pair.titles[1]);
  const [title] = pairs[0].titles;
  const [near, far] = [...pairs].sort((one, other) => other.explanation.similarity - one.explanation.similarity);
  const shares = pairs.map(({ explanation }) => explanation.left.passages.map((_, place) =>
    explanation.links.filter((link) => link.left === place).reduce((sum, link) => sum + link.share, 0)));
  const rows = pairs[0].explanation.left.passages.map(({ text }, place) =>
    ({ place, text, first: shares[0][place], second: shares[1][place], difference: shares[0][place] - shares[1][place] }));
  rows.sort((one, other) => other.difference - one.difference);
  const sign = (value) => `${value > 0 ? "+" : ""}${decimals(value)}`;
  return make("div", {}, make("h1", {}, t("compare.triple", { anchor: title, first, second })),
    make("p", { class: "finding" }, t("compare.nearer", { model: collection.model, anchor: title, near: near.titles[1], far: far.titles[1],
      similarity: decimals(near.explanation.similarity), other: decimals(far.explanation.similarity) })),
    make("h2", {}, t("compare.passages", { anchor: title })), make("p", { class: "meta" }, t("compare.passages_text")),
    make("div", { class: "wide" }, sortableTable([
      { name: title, value: (row) => row.place, cell: (row) => [make("span", { class: "number" }, row.place + 1), row.text] },
      { name: first, value: (row) => row.first, cell: (row) => decimals(row.first) },
      { name: second, value: (row) => row.second, cell: (row) => decimals(row.second) },
      { name: t("compare.difference"), value: (row) => row.difference, cell: (row) => sign(row.difference) },
    ], rows)),
    pairs.map((pair) => make("section", {}, make("h2", {}, t("compare.title", { left: pair.titles[0], right: pair.titles[1] })),
      ...pairParts(collection, pair, params))));
}

/** Whether two stories are one, as the reader decides; kept with the pairs to check. */
function decisionField(collection, [left, right], signal) {
  const base = `${path("collections", collection.name)}/pairs`;
  const reader = readerName();
  const pair = { left, right, reader };
  const place = make("span", {});
  const set = (decision) => attempt(place, async () => {
    await (decision ? put(`${base}/decisions`, { ...pair, decision }) : remove(`${base}/decisions`, pair));
    announce(t("pairs.saved", { decision: t(decision ? DECISION_TEXTS[decision] : "compare.undecided") }));
  });
  const options = [["", t("compare.undecided")], ...Object.entries(DECISION_TEXTS).map(([decision, key]) => [decision, t(key)])];
  const choice = select(options, "", set, { id: "decision" });
  get(`${base}/decided?${new URLSearchParams({ reader })}`, signal).then((decided) => {
    const known = decided.find((each) => [left, right].includes(each.left.id) && [left, right].includes(each.right.id));
    choice.value ||= known?.decision ?? "";
  }, () => null);  // without it, the view is complete all the same
  place.append(field(t("compare.decision"), choice));
  return place;
}

/** What remains of the similarity without the passages that add most to it. */
function deletionPart(rows) {
  if (!rows) return null;
  const column = (key, name) => ({ name: t(key), value: (row) => row[name], cell: (row) => decimals(row[name]) });
  return make("section", {}, make("h2", {}, t("compare.deletion")), make("p", { class: "meta" }, t("compare.deletion_text")),
    make("div", { class: "wide" }, sortableTable([
      { name: t("compare.left_out"), value: (row) => row.removed, cell: (row) => percent(row.removed) },
      column("compare.score", "score"), column("compare.score_random", "score_random"),
      column("compare.cosine", "cosine"), column("compare.cosine_random", "cosine_random"),
    ], rows)));
}

/** Theme, action and outcome of both stories, where they were written. */
function viewsPart(views, titles) {
  if (!views?.length) return null;
  return make("section", {}, make("h2", {}, t("compare.views")), make("table", { class: "links" },
    make("thead", {}, make("tr", {}, make("th", {}), titles.map((title) => make("th", {}, title)))),
    make("tbody", {}, views.map(([aspect, texts]) => make("tr", {}, make("th", { scope: "row" }, t(ASPECTS[aspect])),
      texts.map((text, side) => make("td", { "data-name": titles[side] }, text)))))));
}

/** How the similarity follows from the score. */
function termsOf({ score, hubness: [left, right], similarity }) {
  return { score: decimals(score), left: decimals(left), right: decimals(right), half: decimals((left + right) / 2), similarity: decimals(similarity) };
}

/** Two stories of a file that does not contain their links. */
function unlinked(collection, stories, heading, { left, right, similarity }) {
  return make("div", {}, heading,
    similarity === null ? null : similarityLine([""], similarity, similarity),
    make("p", {}, t("compare.not_linked")),
    edition(collection, stories, { left, right, links: [], score: 0 }));
}

/** The strongest links, or both texts: the choice is in the address. */
function pictures(collection, stories, titles, explanation, params) {
  const place = make("div", { class: "linked-passages" });
  const kinds = [["strongest", "compare.strongest"], ["texts", "compare.texts"]];
  const draw = (shown) => {
    for (const control of controls) control.setAttribute("aria-pressed", control.dataset.view === shown);
    place.replaceChildren(shown === "texts" ? edition(collection, stories, explanation) : strongest(titles, explanation));
  };
  const controls = kinds.map(([kind, key]) => button(t(key), () => {
    keepInAddress({ view: kind === "texts" ? kind : null });
    draw(kind);
  }, { "data-view": kind }));
  draw(params.get("view") === "texts" ? "texts" : "strongest");
  const [left, right] = stories;
  return [make("p", { class: "actions pictures", role: "group", "aria-label": t("compare.view") }, controls,
    linkButton(t("compare.swap"), address(collection.name, "compare", [right.id, left.id], params), { class: "button swap" }),
    carried ? null : saveButton(collection, stories)), place];
}

/** A button that saves both texts with their links as TEI. */
function saveButton(collection, [left, right]) {
  const place = make("span", {});
  place.append(button(t("export.tei"), () => attempt(place, async () => {
    const file = await download("POST", `${path("collections", collection.name)}/alignment`, { left: { id: left.id }, right: { id: right.id } });
    announce(t("export.saved", { file }));
  }), { "data-format": "tei" }));
  return place;
}

function strongest(titles, explanation) {
  return explanation.links.length ? linkTable(explanation, titles) : make("p", {}, t("search.no_links"));
}

function noPair(collection) {
  const [left, right] = chosenStories(collection.name);
  const link = right ? linkButton(t("compare.chosen"), address(collection.name, "compare", [left.id, right.id])) : null;
  return make("div", {}, make("h1", {}, t("action.compare")),
    emptyState(t("compare.none"), t("compare.none_text"), link, linkButton(t("nav.search"), address(collection.name, "search"))));
}

function edition(collection, stories, { left, right, links, score }) {
  const strongest = Math.max(...links.map((link) => link.share), 1e-9);
  const rows = parallelRows(left.passages.length, right.passages.length, links);
  const drawing = { collection, stories, score, strongest, passages: [left.passages, right.passages] };
  const grid = make("div", { class: "edition" },
    make("div", { class: "row heads" }, stories.map((story, side) =>
      [side ? make("span", { class: "share" }, term("term.share_short")) : null, make("h2", {}, storyLink(collection, story))])),
    rows.map((row) => editionRow(row, drawing)));
  highlightPartners(grid);
  return grid;
}

function editionRow(row, drawing) {
  const sides = [0, 1].map((side) => make("div", { class: "side" },
    row.sides[side].length ? make("span", { class: "label" }, titleOf(drawing.collection, drawing.stories[side])) : null,
    row.sides[side].map((cell) => passage(cell, side, drawing))));
  if (!row.link) return make("div", { class: "row gap" }, sides[0], make("div", { class: "share" }), sides[1]);
  const strength = row.link.share / drawing.strongest;
  const share = make("div", { class: "share" },
    make("i", { "aria-hidden": "true" }), make("span", { class: "unseen" }, t("compare.share")), ` ${shareText(row.link, drawing.score)} ${arrowOf(row.link)}`);
  return make("div", { class: "row linked", styles: { "--strength": strength } }, sides[0], share, sides[1]);
}

/** A passage with its number, and those of its links that have no row of their own. */
function passage({ number: place, links }, side, { passages, score, strongest }) {
  const other = 1 - side;
  const names = ["left", "right"];
  return [
    make("p", { class: "passage" }, make("span", { class: "number" }, place + 1), passages[side][place].text),
    ...links.map((link) => {
      const end = link[names[other]];
      const name = `${link.left}-${link.right}`;
      const summary = make("summary", {}, `${t("compare.also", { number: end + 1 })}: ${shareText(link, score)}`);
      return make("details", { class: "also", "data-link": name, styles: { "--strength": link.share / strongest } },
        summary, passages[other][end].text);
    }),
  ];
}

/** A link outside the order has two ends; pointing at one marks both. */
function highlightPartners(grid) {
  grid.addEventListener("mouseover", (event) => {
    const name = event.target.closest("[data-link]")?.dataset.link;
    for (const end of grid.querySelectorAll("[data-link]")) end.classList.toggle("partner", end.dataset.link === name);
  });
}
