// Links between the passages of two stories, the strongest first.

import { make } from "./dom.js";
import { button } from "./parts.js";
import { decimals, number, percent, t, term } from "./texts.js";

/** Links that are shown at first. */
const SHOWN = 10;

/** The share of a link as a percentage of the sum of all. */
export const shareText = (link, score) => percent(link.share / Math.max(score, 1e-9));

const ARROWS = { both: "↔", "a to b": "→", "b to a": "←" };
/** The direction of a link: from a passage to its best match. */
export const arrowOf = (link) => ARROWS[link.direction] ?? "";

/** A table of links: a passage of each side and its share; `both`: the left passages are shown, too. */
export function linkTable({ left, right, links, score }, [leftName, rightName], both = true) {
  const sorted = [...links].sort((a, b) => b.share - a.share);
  const most = Math.max(sorted[0].share, 1e-9);
  const row = (link) => make("tr", {},
    both ? make("td", { "data-name": leftName }, passage(left, link.left)) : null,
    make("td", { "data-name": rightName }, passage(right, link.right)),
    make("td", { "data-name": t("term.share_short"), class: "similarity", title: decimals(link.share) },
      make("i", { styles: { "--share": link.share / most }, "aria-hidden": "true" }), ` ${shareText(link, score)} ${both ? arrowOf(link) : ""}`));
  const body = make("tbody", {}, sorted.slice(0, SHOWN).map(row));
  const head = make("tr", {}, both ? make("th", {}, leftName) : null, make("th", {}, rightName), make("th", {}, term("term.share_short")));
  const more = button(t("search.all_links", { n: number(sorted.length) }), () => {
    body.append(...sorted.slice(SHOWN).map(row));
    more.remove();
  }, { class: "more-links" });
  return make("div", {}, make("table", { class: "links" }, make("thead", {}, head), body), sorted.length > SHOWN ? more : null);
}

const passage = (side, number) => [make("span", { class: "number" }, number + 1), side.passages[number].text];
