// A report: findings, charts, tables and wrong answers, section by section.

import { get, path } from "../api.js";
import { chartKey, chartOf, seriesColor, SIZE } from "../charts.js";
import { color, make } from "../dom.js";
import { attempt, button } from "../parts.js";
import { savePng, saveSvg } from "../saving.js";
import { sortableTable } from "../tables.js";
import { decimals, t } from "../texts.js";

/** Pixels of both edges of the page. */
const EDGES = 40;
const SECTIONS = {
  accuracy: ["report.accuracy", null],
  training: ["report.training", "report.training.about"],
  map: ["report.map", "report.map.about"],
  distances: ["report.distances", "report.distances.about"],
  kinds: ["report.kinds", "report.kinds.about"],
  margin: ["report.margin", "report.margin.about"],
  errors: ["report.errors", "report.errors.about"],
  data: ["report.data", null],
  check: ["report.check", "report.check.about"],
};
const CAPTIONS = {
  validation: "report.caption.validation", loss: "report.caption.loss", answers: "report.caption.answers",
  distances: "report.caption.distances", margin: "report.caption.margin",
};
const HEADINGS = { anchor: "report.anchor", closer: "report.closer", answered: "report.answered" };

export async function reportView({ collection, signal }) {
  const report = await get(path("collections", collection.name, "report"), signal);
  return make("div", { class: "report" }, make("h1", {}, report.title),
    report.findings.map((line) => make("p", { class: "finding", lang: "en" }, line)),
    report.sections.map(sectionPart));
}

function sectionPart(section) {
  const [title, about] = SECTIONS[section.kind] ?? [null, null];
  return make("section", {},
    title ? make("h2", {}, t(title)) : null,
    about ? make("p", { class: "meta" }, t(about)) : null,
    section.note ? make("p", { class: "meta", lang: "en" }, section.note) : null,
    section.key.length > 1 ? keyPart(section) : null,
    section.lines.length ? make("ul", { lang: "en" }, section.lines.map((line) => make("li", {}, line))) : null,
    section.figures.length ? make("div", { class: "charts" }, section.figures.map(figurePart)) : null,
    section.tables.map(tablePart),
    section.errors.map(([system, errors], place) => errorsPart(system, errors, place === 0)));
}

/** The colors of systems, of both candidates, or of right and wrong answers. */
function keyPart({ kind, key }) {
  if (kind === "map") return chartKey(key, [color("--right"), color("--wrong")]);
  const names = kind === "distances" ? [t("report.closer_candidate"), t("report.other_candidate")] : key;
  return chartKey(names, names.map((_, number) => seriesColor(number)));
}

function figurePart(figure) {
  const caption = figure.caption in CAPTIONS ? t(CAPTIONS[figure.caption], figure.values) : figure.caption;
  const drawing = chartOf(figure, Math.min(SIZE.width, document.getElementById("main").clientWidth - EDGES));
  drawing.setAttribute("aria-label", caption);
  const chosen = figure.kind === "triangles" ? make("div", { class: "chosen-triple", "aria-live": "polite" }) : null;
  const place = make("figure", {}, make("figcaption", {}, caption), drawing, chosen);
  const save = (how) => attempt(place, () => how(drawing, caption.replace(/[\\/:]/g, " ")));
  place.append(make("p", { class: "actions" }, button(t("map.save_svg"), () => save(saveSvg), { class: "quiet save-svg" }), button(t("map.save_png"), () => save(savePng), { class: "quiet save-png" })));
  if (chosen) showTriples(drawing, figure.triples, chosen);
  return place;
}

/** Show the stories of a triple that is pointed at; a click keeps them. */
function showTriples(drawing, triples, place) {
  let kept = null;
  const show = (group) => {
    for (const each of drawing.querySelectorAll(".triple")) each.classList.toggle("shown", each === group);
    if (group === null) return place.replaceChildren(make("p", { class: "meta" }, t("report.map.hint")));
    const { answer, texts } = triples[Number(group.dataset.triple)];
    const [anchor, closer, other] = texts;
    return place.replaceChildren(make("p", {}, make("b", { lang: "en" }, answer)),
      ...[["report.anchor", anchor], ["report.closer", closer], ["report.other", other]].map(([key, text]) =>
        make("p", {}, make("b", {}, `${t(key)}: `), text)));
  };
  drawing.addEventListener("mouseover", (event) => show(event.target.closest(".triple") ?? kept));
  drawing.addEventListener("click", (event) => {
    kept = event.target.closest(".triple");
    show(kept);
  });
  show(null);
}

function tablePart([name, rows]) {
  if (rows.length === 0) return null;
  const names = Object.keys(rows[0]).filter((column) => rows.some((row) => row[column] !== "" && row[column] !== null));
  const columns = names.map((column) => ({ name: column, value: (row) => row[column],
    cell: column === "similarity" ? (row) => decimals(row[column]) : undefined }));
  return make("div", { class: "wide", lang: "en" }, name ? make("h3", {}, name) : null, sortableTable(columns, rows));
}

/** The wrong answers of a system, with the words that a candidate shares with the anchor marked. */
function errorsPart(system, errors, isOpen) {
  return make("details", { open: isOpen }, make("summary", {}, system), errors.map(({ row, stories }) => make("article", {},
    make("p", { class: "meta" }, t("report.row", { row })),
    make("div", { class: "stories" }, stories.map(([heading, score, pieces]) => make("div", { class: heading },
      make("h4", {}, score === null ? t(HEADINGS[heading]) : `${t(HEADINGS[heading])}, ${t("report.score", { score })}`),
      make("p", {}, pieces.map(([piece, isMarked]) => (isMarked ? make("mark", {}, piece) : piece)))))))));
}
