// Two stories as a parallel edition: passages that are linked share a row.

import { address } from "../address.js";
import { path, post } from "../api.js";
import { make } from "../dom.js";
import { parallelRows } from "../parallel.js";
import { emptyState, linkButton, storyLink } from "../parts.js";
import { chosenStories } from "../selection.js";
import { counted, decimals, t, term } from "../texts.js";

export async function compareView({ collection, ids, signal }) {
  if (ids.length < 2) return noPair(collection);
  const [left, right] = ids;
  const body = { left: { id: left }, right: { id: right } };
  const explanation = await post(`${path("collections", collection.name)}/explain`, body, signal);
  const titles = [explanation.left.title || left, explanation.right.title || right];
  return make("div", {},
    make("h1", {}, t("compare.title", { left: titles[0], right: titles[1] })),
    make("p", { class: "finding" }, term("term.similarity"), ` ${decimals(explanation.similarity)}`),
    make("p", {}, counted("compare.links", explanation.links.length), " ", term("term.share"), "."),
    make("p", { class: "actions" },
      linkButton(t("compare.swap"), address(collection.name, "compare", [right, left]), { id: "swap" })),
    edition(collection, [{ id: left, title: titles[0] }, { id: right, title: titles[1] }], explanation));
}

function noPair(collection) {
  const [left, right] = chosenStories(collection.name);
  const link = right ? linkButton(t("compare.chosen"), address(collection.name, "compare", [left.id, right.id])) : null;
  return make("div", {}, make("h1", {}, t("action.compare")),
    emptyState(t("compare.none"), t("compare.none_text"), link, linkButton(t("nav.search"), address(collection.name, "search"))));
}

function edition(collection, stories, { left, right, links }) {
  const strongest = Math.max(...links.map((link) => link.share), 1e-9);
  const rows = parallelRows(left.passages.length, right.passages.length, links);
  const passages = [left.passages, right.passages];
  const grid = make("div", { class: "edition" },
    make("div", { class: "row heads" }, stories.map((story, side) =>
      [side ? make("span", { class: "share" }, term("term.share_short")) : null, make("h2", {}, storyLink(collection, story))])),
    rows.map((row) => editionRow(row, passages, stories, strongest)));
  highlightPartners(grid);
  return grid;
}

function editionRow(row, passages, stories, strongest) {
  const sides = [0, 1].map((side) => make("div", { class: "side" },
    row.sides[side].length ? make("span", { class: "label" }, stories[side].title) : null,
    row.sides[side].map((cell) => passage(cell, side, passages, strongest))));
  if (!row.link) return make("div", { class: "row gap" }, sides[0], make("div", { class: "share" }), sides[1]);
  const strength = row.link.share / strongest;
  const share = make("div", { class: "share" },
    make("i", { "aria-hidden": "true" }), make("span", { class: "unseen" }, t("compare.share")), ` ${decimals(row.link.share)}`);
  return make("div", { class: "row linked", styles: { "--strength": strength } }, sides[0], share, sides[1]);
}

/** A passage with its number, and those of its links that have no row of their own. */
function passage({ number, links }, side, passages, strongest) {
  const other = 1 - side;
  const names = ["left", "right"];
  return [
    make("p", { class: "passage" }, make("span", { class: "number" }, number + 1), passages[side][number].text),
    ...links.map((link) => {
      const end = link[names[other]];
      const name = `${link.left}-${link.right}`;
      const summary = make("summary", {}, `${t("compare.also", { number: end + 1 })}: ${decimals(link.share)}`);
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
