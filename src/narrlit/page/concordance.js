// Exact words and phrases in context, as concordancers show them.

import { path, post } from "./api.js";
import { announce, make } from "./dom.js";
import { emptyState, field, select, storyLink } from "./parts.js";
import { counted, language, number, t } from "./texts.js";

/** Lines that are shown at once. */
const SHOWN = 200;

/** The lines of a phrase in the stories that pass the filters. */
export async function concordance(collection, phrase, filters, sort, onsort, signal) {
  const answer = await post(`${path("collections", collection.name)}/concordance`, { phrase, filters }, signal);
  announce(counted("words_found.count", answer.total, { stories: counted("stories", answer.stories) }));
  if (answer.total === 0) return emptyState(t("search.nothing"), t("words_found.none_text"));
  const sorts = [["", t("words_found.in_order")], ["right", t("words_found.right")], ["left", t("words_found.left")]];
  const lines = sorted(answer.lines, sort);
  return make("section", {},
    make("p", { class: "finding" }, counted("words_found.count", answer.total, { stories: counted("stories", answer.stories) })),
    answer.total > answer.lines.length ? make("p", { class: "meta" }, t("words_found.first", { n: number(answer.lines.length) })) : null,
    make("div", { class: "tools" }, field(t("sort.by"), select(sorts, sort, onsort, { id: "sort-lines" }))),
    kwic(collection, lines));
}

function kwic(collection, lines) {
  const row = (line) => make("tr", {},
    make("td", { class: "kwic-before", "data-name": t("words_found.before") }, line.before),
    make("td", { class: "kwic-match", "data-name": t("words_found.match") }, make("mark", {}, line.match)),
    make("td", { class: "kwic-after", "data-name": t("words_found.after") }, line.after),
    make("td", { "data-name": t("search.story") }, storyLink(collection, line, { from: line.start, to: line.end })));
  const body = make("tbody", {}, lines.slice(0, SHOWN).map(row));
  const more = make("button", { type: "button" }, t("words_found.more", { n: number(lines.length) }));
  more.addEventListener("click", () => {
    body.append(...lines.slice(SHOWN).map(row));
    more.remove();
  });
  const head = ["words_found.before", "words_found.match", "words_found.after", "search.story"].map((key) => make("th", { scope: "col" }, t(key)));
  return make("div", {}, make("table", { class: "kwic" }, make("thead", {}, make("tr", {}, head)), body), lines.length > SHOWN ? more : null);
}

/** By the words after a match, or by those before it, the nearest first. */
function sorted(lines, sort) {
  const backwards = (text) => text.trim().split(/\s+/).reverse().join(" ");
  const key = { right: (line) => line.after.trim(), left: (line) => backwards(line.before) }[sort];
  return key ? [...lines].sort((one, other) => key(one).localeCompare(key(other), language)) : lines;
}
