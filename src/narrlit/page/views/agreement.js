// How far nearest stories agree with a column, how high versions are ranked, and what else nearest stories share.

import { address } from "../address.js";
import { getComputed, path } from "../api.js";
import { carried } from "../carried.js";
import { confoundName, confoundsOf } from "../confounds.js";
import { make, makeSvg, pause } from "../dom.js";
import { titleOf } from "../labels.js";
import { emptyState, errorBox, field, linkButton, progressBar, select, storyLink } from "../parts.js";
import { sortableTable } from "../tables.js";
import { counted, decimals, number, percent, t, term } from "../texts.js";

const METRICS = [["recall@1", "ranking.first"], ["recall@10", "ranking.ten"], ["MRR", "ranking.mrr"], ["nDCG@10", "ranking.ndcg"]];
/** Width of a picture in its own units. */
const WIDTH = 240;

export async function agreementView({ collection, params, signal }) {
  const view = make("div", {}, make("h1", {}, t("agreement.title")), make("p", {}, t("agreement.about")));
  const columns = collection.columns.filter(({ name, distinct, values }) =>
    distinct > 1 && values[0]?.count > 1 && (carried === null || name in carried.answers.agreement));
  if (columns.length === 0) {
    view.append(emptyState(t("catalog.no_column"), t("agreement.no_column_text"), linkButton(t("nav.collections"), "#/")));
    return view;
  }
  const names = columns.map((column) => column.name);
  const column = names.includes(params.get("column")) ? params.get("column") : names[0];
  const control = names.includes(params.get("control")) ? params.get("control") : "";
  const open = (changes) => (location.hash = address(collection.name, "agreement", [], { column, control, ...changes }));
  const base = path("collections", collection.name);
  view.append(make("div", { class: "tools" },
    field(t("catalog.column"), select(names.map((name) => [name, name]), column, (chosen) => open({ column: chosen }), { id: "column" })),
    carried ? null : field(t("ranking.control"), select([["", t("ranking.no_control")], ...names.filter((name) => name !== column).map((name) => [name, name])],
      control, (chosen) => open({ control: chosen }), { id: "control" }))));
  const query = new URLSearchParams({ column });
  view.append(computed(getComputed(`${base}/agreement?${query}`, signal, pause), (answer) => agreementParts(collection, answer), signal));
  if (control) query.set("control", control);
  view.append(computed(getComputed(`${base}/ranking?${query}`, signal, pause), rankingParts, signal));
  view.append(computed(confoundsOf(collection, signal), confoundParts, signal));
  return view;
}

/** A part of the view that comes once it is computed. */
function computed(promise, draw, signal) {
  const place = make("section", {}, progressBar(null, t("agreement.computing")));
  promise.then((answer) => place.replaceChildren(...draw(answer)), (error) => {
    if (carried) place.remove();  // a file carries the agreement alone
    else if (!signal.aborted) place.replaceChildren(errorBox(error));
  });
  return place;
}

// Agreement ----------------------------------------------------------------------------------------------------------

function agreementParts(collection, { column, stories, partners, shares, values, surprises }) {
  const rows = values.map((value) => ({ ...value, stands_out: value.within - value.to_others }));
  return [
    make("h2", {}, t("agreement.neighbors")),
    ...shares.map((share) => make("p", share.neighbors === 1 ? { class: "finding" } : {}, shareText(column, partners, share))),
    stories < collection.stories ? make("p", { class: "meta" }, counted("agreement.left_out", collection.stories - stories, { column })) : "",
    make("div", { class: "wide" }, sortableTable([
      { name: column, value: (row) => row.value },
      { name: t("agreement.stories"), value: (row) => row.stories, cell: (row) => number(row.stories) },
      { name: t("agreement.share"), value: (row) => row.share, cell: (row) => percent(row.share) },
      { name: t("agreement.stands_out"), value: (row) => row.stands_out, cell: (row) => decimals(row.stands_out) },
    ], rows)),
    make("h2", {}, t("agreement.surprises", { column })),
    make("p", {}, t("agreement.surprises_text", { column })),
    make("ol", {}, surprises.map(({ left, right, similarity }) => make("li", {},
      storyLink(collection, left), ` (${left.value}) – `, storyLink(collection, right), ` (${right.value}) `,
      make("span", { class: "meta" }, `${t("term.similarity")} ${decimals(similarity)}`), " ",
      make("a", { href: address(collection.name, "compare", [left.id, right.id]),
        "aria-label": `${t("action.compare")}: ${titleOf(collection, left)} – ${titleOf(collection, right)}` }, t("action.compare"))))),
  ];
}

/** How many nearest stories share a value, and how many would by chance. */
export function shareText(column, partners, { neighbors, share, chance, low, high, possible }) {
  const values = { column, partners: number(partners), neighbors: number(neighbors), share: percent(share), chance: percent(chance), low: percent(low), high: percent(high) };
  const text = t(neighbors === 1 ? "agreement.nearest" : "agreement.several", values);
  return possible < 1 ? `${text} ${t("agreement.possible", { possible: percent(possible) })}` : text;
}

// Ranking ------------------------------------------------------------------------------------------------------------

function rankingParts({ column, control, queries, stories, figures, differences }) {
  const all = figures.filter((figure) => figure.subset === "all");
  const systems = [...new Set(all.map((figure) => figure.system))];
  const figureOf = (system, metric, subset = "all") => figures.find((each) => each.system === system && each.metric === metric && each.subset === subset);
  const columns = [{ name: t("ranking.system"), value: (system) => system }, ...METRICS.map(([metric, key]) => ({
    name: t(key), value: (system) => figureOf(system, metric).value, cell: (system) => figureCell(figureOf(system, metric)) }))];
  return [
    make("h2", {}, term("term.ranking")),
    make("p", {}, counted("ranking.count", queries, { column, stories: number(stories) })),
    make("div", { class: "wide" }, sortableTable(columns, systems)),
    picture(systems, figureOf), ...controlParts(systems[0], column, control, figureOf, differences)];
}

const figureCell = ({ value, low, high }) => [make("b", {}, percent(value)), make("small", { class: "meta" }, low === null ? "" : ` ${percent(low)} – ${percent(high)}`)];

/** Each system's first and ten nearest as points with their intervals, from 0 to 100 %. */
function picture(systems, figureOf) {
  const rows = METRICS.slice(0, 2).flatMap(([metric, key]) => systems.map((system) => ({ name: `${system} · ${t(key)}`, ...figureOf(system, metric) })));
  const lines = rows.map(({ name, value, low, high }) => {
    const x = (share) => WIDTH * share;
    const drawing = makeSvg("svg", { viewBox: `-6 0 ${WIDTH + 12} 16`, class: "interval", "aria-hidden": "true" },
      makeSvg("line", { x1: 0, x2: WIDTH, y1: 8, y2: 8, class: "axis" }),
      low === null ? null : makeSvg("line", { x1: x(low), x2: x(high), y1: 8, y2: 8, class: "range" }),
      makeSvg("circle", { cx: x(value), cy: 8, r: 5 }));
    return make("li", {}, make("span", {}, name), drawing, make("span", {}, percent(value)));
  });
  return make("figure", {}, make("ul", { class: "intervals" }, lines), make("figcaption", { class: "meta" }, t("ranking.picture")));
}

/** What is left if the column is permuted among stories of one length, or of one value of the control. */
function controlParts(system, column, control, figureOf, differences) {
  const strata = [["the collection", t("ranking.by_chance")], ["length", t("confounds.length")]];
  if (control) strata.push([control, control]);
  const rows = strata.map(([name, text]) => ({ text, figure: figureOf(system, "recall@1", `permuted within: ${name}`),
    p: differences.find((each) => each.system === system && each.metric === "recall@1" && each.subset === `permuted within: ${name}`)?.p }))
    .filter((row) => row.figure);
  return [make("h3", {}, t("ranking.permuted")), make("p", {}, t("ranking.permuted_text", { column })),
    make("div", { class: "wide" }, sortableTable([
      { name: t("ranking.within"), value: (row) => row.text },
      { name: t("ranking.first"), value: (row) => row.figure.value, cell: (row) => figureCell(row.figure) },
      { name: "p", value: (row) => row.p, cell: (row) => (row.p === null ? "" : number(row.p)) },
    ], rows))];
}

// Confounds ----------------------------------------------------------------------------------------------------------

function confoundParts(confounds) {
  if (confounds.length === 0) return [];
  const warnings = confounds.filter((each) => each.is_warning);
  return [make("h2", {}, t("confounds.title")), make("p", {}, t("confounds.about")),
    ...warnings.map((each) => make("p", { class: "warning" },
      t("confounds.warning", { name: confoundName(each), share: percent(each.share), chance: percent(each.chance) }))),
    make("div", { class: "wide" }, sortableTable([
      { name: t("confounds.property"), value: confoundName },
      { name: t("confounds.share"), value: (each) => each.share, cell: (each) => percent(each.share) },
      { name: t("confounds.chance"), value: (each) => each.chance, cell: (each) => percent(each.chance) },
      { name: "p", value: (each) => each.p, cell: (each) => number(Math.round(each.p * 1000) / 1000) },
    ], confounds))];
}
