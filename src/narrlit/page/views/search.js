// Search by what happens in a story, or by a story; without either, all stories of the collection.

import { address, parseAddress } from "../address.js";
import { get, path, post } from "../api.js";
import { announce, make } from "../dom.js";
import { concordance } from "../concordance.js";
import { filterChips, filtersOf } from "../filters.js";
import { titleOf } from "../labels.js";
import { linkTable } from "../links.js";
import {
  attempt, button, emptyState, field, linkButton, listButton, metadataLine, select, storyLink,
} from "../parts.js";
import { scaleNote, standingLine } from "../standing.js";
import { counted, lengthText, number, t, term } from "../texts.js";

/** Stories of a page where nothing is searched. */
const PAGE = 50;

export async function searchView(context) {
  const { collection, params, signal } = context;
  const search = { query: params.get("q"), like: params.get("like"), filters: filtersOf(params), signal };
  const heading = make("h1", {}, t("search.title", { name: collection.name }));
  if (collection.stories === 0) {
    const empty = emptyState(t("search.empty"), t("collections.none_text"), linkButton(t("nav.collections"), "#/"));
    return make("div", {}, heading, empty);
  }
  const inWords = params.get("mode") === "words";
  const sortLines = (sort) => change(collection, params, { lines: sort });
  let found;
  if (inWords && search.query) found = await concordance(collection, search.query, search.filters, params.get("lines") ?? "", sortLines, signal);
  else if (search.query || search.like) found = await results(collection, params, search);
  else found = await allStories(collection, params, signal);
  const view = make("div", { class: "found" }, found);
  placeBeside(refinement(collection, params, inWords), found, signal);
  return make("div", {}, heading, searchForm(collection, params, inWords), view);
}

/** What narrows a search: how it is done, and filters; folded where there is no place beside the results. */
function refinement(collection, params, inWords) {
  const modes = [["", t("search.by_meaning")], ["words", t("search.by_words")]];
  const setMode = (mode) => change(collection, params, { q: document.getElementById("query").value.trim(), mode, like: null, offset: null });
  const chosen = Object.values(filtersOf(params)).flat().length;
  return make("details", { class: "refine" },
    make("summary", {}, chosen ? counted("filters.chosen", chosen) : t("filters.fold")),
    field(t("search.mode"), select(modes, inWords ? "words" : "", setMode, { id: "mode" })),
    inWords ? null : options(collection, params),
    filterChips(collection, params));
}

/** After the results and beside them, which one reaches first by the keyboard; on a phone, folded above them. */
function placeBeside(panel, found, signal) {
  const narrow = matchMedia("(max-width: 900px)");
  const place = () => {
    panel.open = !narrow.matches;
    if (narrow.matches) found.before(panel);
    else found.after(panel);
  };
  narrow.addEventListener("change", place, { signal });
  place();
}

/** Go to the same search with other parameters. */
function change(collection, params, changes) {
  const next = new URLSearchParams(params);
  for (const [name, value] of Object.entries(changes)) {
    if (value) next.set(name, value);
    else next.delete(name);
  }
  location.hash = address(collection.name, "search", [], next);
}

function searchForm(collection, params, inWords) {
  const query = make("textarea", { id: "query", rows: 2, placeholder: t(inWords ? "search.words_example" : "search.example") });
  query.value = params.get("q") ?? "";
  const present = () => parseAddress(location.hash).params;
  const submit = () => change(collection, present(), { q: query.value.trim(), like: null, offset: null });
  query.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    submit();
  });
  const form = make("form", { class: "search", role: "search" },
    field(t(inWords ? "search.words_label" : "search.label"), query),
    make("button", { type: "submit", class: "primary", id: "submit" }, t("search.submit")),
    inWords ? make("p", { class: "meta modes" }, t("search.words_how")) : null);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  return form;
}

function options(collection, params) {
  const measures = [["", t("measure.default")], ["passages", t("measure.passages")], ["fused", t("measure.fused")],
    ["csls", t("measure.csls")], ["cosine", t("measure.cosine")], ["lexical", t("measure.lexical")]];
  const counts = ["10", "25", "50"].map((count) => [count, count]);
  const set = (name) => (value) => change(collection, params, { [name]: value });
  const copies = make("input", { type: "checkbox", id: "copies", checked: params.get("copies") !== "show" });
  copies.addEventListener("change", () => change(collection, params, { copies: copies.checked ? null : "show" }));
  return make("details", { class: "options", open: ["measure", "k", "copies"].some((name) => params.has(name)) },
    make("summary", {}, t("search.options")),
    make("div", { class: "tools" },
      field(term("term.measure"), select(measures, params.get("measure") ?? "", set("measure"), { id: "measure" })),
      field(t("search.count"), select(counts, params.get("k") ?? "10", set("k"), { id: "count" })),
      make("label", { class: "check" }, copies, t("search.fold"))));
}

async function results(collection, params, { query, like, filters, signal }) {
  const body = { k: Number(params.get("k") ?? 10), filters, fold_copies: params.get("copies") !== "show" };
  if (like) body.like = like;
  else body.query = query;
  if (params.has("measure")) body.measure = params.get("measure");
  const found = await post(`${path("collections", collection.name)}/search`, body, signal);
  announce(counted("search.found", found.hits.length));
  const most = Math.max(...found.hits.map((each) => each.similarity), 0);
  const source = like ? { id: like } : { text: query };
  const hits = found.hits.map((each) => hit(collection, each, most, source, signal));
  const view = make("section", {},
    like ? await likeBanner(collection, like, params, signal) : null,
    hits.length
      ? make("p", { class: "meta" }, t("search.time", { n: number(hits.length), seconds: number(Math.round(found.seconds * 100) / 100) }))
      : emptyState(t("search.nothing"), t("search.nothing_text")),
    make("ol", { class: "hits" }, hits));
  // A sentence is less like a story than another story is: the scale of pairs of stories holds for these alone.
  if (like && !params.has("measure") && hits.length) view.querySelector(".hits").before(scaleNote(collection, view, signal));
  return view;
}

async function likeBanner(collection, like, params, signal) {
  const { stories: [story] } = await get(`${path("collections", collection.name)}/stories?ids=${encodeURIComponent(like)}`, signal);
  const stop = button(t("search.stop_like"), () => change(collection, params, { like: null }), { class: "quiet", id: "stop-like" });
  return make("p", { class: "banner" }, t("search.like"), " ", storyLink(collection, story ?? { id: like }), " ", stop);
}

function hit(collection, found, most, source, signal) {
  const { passage } = found;
  const title = titleOf(collection, found);
  const item = make("li", { class: "hit" },
    make("h2", {}, storyLink(collection, found, { from: passage.start, to: passage.end })),
    standingLine(found.standing, found.similarity, most),
    metadataLine(found.metadata, collection),
    make("p", {}, found.before, make("mark", {}, passage.text), found.after),
    found.copies.length ? copies(collection, found.copies) : null);
  const why = make("div", { class: "why" });
  item.append(
    make("p", { class: "actions" },
      whyButton(collection, found, source, why),
      linkButton(t("search.more_like"), address(collection.name, "search", [], { like: found.id }), { "aria-label": `${t("search.more_like")}: ${title}` }),
      source.id ? linkButton(t("action.compare"), address(collection.name, "compare", [source.id, found.id]), { "aria-label": t("story.compare_with", { title }) }) : null,
      listButton(collection, found, signal)),
    why);
  return item;
}

function copies(collection, list) {
  return make("details", {}, make("summary", {}, counted("search.copies", list.length)),
    make("ul", {}, list.map((copy) => make("li", {}, storyLink(collection, copy)))));
}

/** A button that opens the passages of which the similarity is made. */
function whyButton(collection, found, source, place) {
  const control = button(t("search.why"), async () => {
    const open = control.getAttribute("aria-expanded") === "true";
    control.setAttribute("aria-expanded", !open);
    place.replaceChildren();
    if (open) return;
    await attempt(place, async () => {
      const explanation = await post(`${path("collections", collection.name)}/explain`, { left: source, right: { id: found.id } });
      place.append(...reasons(explanation));
    });
  }, { "aria-expanded": "false", "aria-label": `${t("search.why")} ${titleOf(collection, found)}` });
  return control;
}

function reasons({ left, right, links, score }) {
  if (links.length === 0) return [make("p", {}, t("search.no_links"))];
  return [linkTable({ left, right, links, score }, [t("search.yours"), t("search.story")], left.passages.length > 1)];
}

/** By what stories are sorted: title, length or a column, up or down. */
function sortChoice(collection, sort, onchange) {
  const names = [["title", t("sort.title")], ["words", t("sort.words")], ...collection.columns.map(({ name }) => [name, name])];
  const options = names.flatMap(([name, text]) => [[name, t("sort.up", { name: text })], [`-${name}`, t("sort.down", { name: text })]]);
  return make("div", { class: "tools" }, field(t("sort.by"), select([["", t("sort.none")], ...options], sort, onchange, { id: "sort" })));
}

async function allStories(collection, params, signal) {
  const offset = Number(params.get("offset") ?? 0);
  const query = new URLSearchParams({ offset, limit: PAGE });
  const sort = params.get("sort") ?? "";
  if (sort) query.set("sort", sort);
  for (const [column, values] of Object.entries(filtersOf(params))) {
    for (const value of values) query.append("filter", `${column}:${value}`);
  }
  const { total, stories } = await get(`${path("collections", collection.name)}/stories?${query}`, signal);
  const turn = (to) => () => change(collection, params, { offset: to });
  return make("section", {},
    make("h2", {}, counted("stories", total)),
    sortChoice(collection, sort, (chosen) => change(collection, params, { sort: chosen, offset: null })),
    make("ul", { class: "cards" }, stories.map((story) => make("li", {},
      make("h3", {}, storyLink(collection, story)),
      metadataLine(story.metadata, collection),
      make("p", { class: "meta" }, lengthText(story)),
      make("p", { class: "actions" },
        linkButton(t("search.more_like"), address(collection.name, "search", [], { like: story.id }), { "aria-label": `${t("search.more_like")}: ${titleOf(collection, story)}` }),
        listButton(collection, story, signal))))),
    make("p", { class: "actions" },
      offset > 0 ? button(t("search.previous"), turn(String(offset - PAGE)), { id: "previous" }) : null,
      offset + PAGE < total ? button(t("search.next"), turn(String(offset + PAGE)), { id: "next" }) : null));
}
