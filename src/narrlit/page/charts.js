// Charts of reports as SVG: lines with intervals, bins, histograms, and triples as triangles in a plane.

import { color, make, makeSvg } from "./dom.js";
import { t } from "./texts.js";

/** Pixels of a chart: its largest width, its height, and that of a plane as a share of the width. */
export const SIZE = { width: 560, height: 300, plane: 0.77 };
/** Pixels around the area of a chart. */
const AROUND = { left: 58, right: 14, top: 12, bottom: 46 };
const TICKS = 6;
const FONT = { "font-family": "system-ui, sans-serif", "font-size": 12 };
/** Pixels of a line of bins, and of the axis below. */
const BIN = { line: 14, gap: 12 };
/** Pixels of a character in the name of a bin. */
const CHARACTER = 7.5;

/** The color of a system or a kind, by its number. */
export const seriesColor = (number) => color(`--series-${number}`);

/** Draw a chart, by its kind, as wide as there is room. */
export function chartOf(chart, width) {
  return { lines: linesChart, bins: binsChart, histogram: histogramChart, triangles: trianglesChart }[chart.kind](chart, width);
}

/** Marks that can be told apart without color: one a system. */
const MARKS = [
  "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", "M-4 -4h8v8h-8z", "M0 -5L5 4H-5z", "M0 -5L5 0L0 5L-5 0z", "M0 5L5 -4H-5z", "M-5 0L-2.5 -4.5H2.5L5 0L2.5 4.5H-2.5z",
];

function mark(number, x, y, title) {
  return makeSvg("path", { d: MARKS[number % MARKS.length], transform: `translate(${x} ${y})`, fill: seriesColor(number) }, makeSvg("title", {}, title));
}

/** An empty chart with axes: x and y are {range, label, ticks, text}; returns its element and the functions to pixels. */
function axes(x, y, width, height = SIZE.height, left = AROUND.left) {
  const [right, bottom] = [width - AROUND.right, height - AROUND.bottom];
  const toX = (value) => left + ((value - x.range[0]) / (x.range[1] - x.range[0])) * (right - left);
  const toY = (value) => bottom - ((value - y.range[0]) / (y.range[1] - y.range[0])) * (bottom - AROUND.top);
  const [line, muted, ink] = ["--line", "--muted", "--ink"].map(color);
  const text = (content, attributes) => makeSvg("text", { fill: muted, ...attributes }, content);
  const svg = makeSvg("svg", { class: "chart", role: "img", width, height, viewBox: `0 0 ${width} ${height}`, ...FONT },
    makeSvg("rect", { width, height, fill: color("--paper") }),
    (x.ticks ?? ticksOf(x.range)).map((tick) => [
      makeSvg("line", { x1: toX(tick), x2: toX(tick), y1: AROUND.top, y2: bottom, stroke: line }),
      text(x.text?.(tick) ?? tickText(tick), { x: toX(tick), y: bottom + 17, "text-anchor": "middle" })]),
    (y.ticks ?? ticksOf(y.range)).map((tick) => [
      y.isPlain ? null : makeSvg("line", { x1: left, x2: right, y1: toY(tick), y2: toY(tick), stroke: line }),
      text(y.text?.(tick) ?? tickText(tick), { x: left - 8, y: toY(tick) + 4, "text-anchor": "end" })].filter(Boolean)),
    text(x.label, { x: (left + right) / 2, y: height - 8, "text-anchor": "middle", fill: ink }),
    y.label ? text(y.label, { transform: `translate(14 ${(AROUND.top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle", fill: ink }) : null);
  return { svg, toX, toY, left, right, bottom };
}

/** Round numbers in a range, about six. */
function ticksOf([low, high]) {
  const rough = (high - low) / TICKS;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((size) => size * power >= rough) ?? 10);
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, place) => (first + place) * step);
}

const tickText = (tick) => String(Number(tick.toPrecision(6)));
const three = (value) => value.toFixed(3);

/** A range around values, with some room. */
function around(values, share = 0.05) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const room = share * (high - low) || 0.5;
  return [low - room, high + room];
}

/** The accuracy of guessing as a dashed line. */
const guessing = (ends) => makeSvg("line", { ...ends, stroke: color("--edge"), "stroke-dasharray": "5 4" });

/** Values of several systems by x, each connected by a line, with intervals if they have some: points are [x, value, low, high]. */
function linesChart({ series, x_label: xLabel, y_label: yLabel, y_range: yRange, ticks, guess, x_whole: isWhole }, width) {
  const all = series.flatMap(({ points }) => points);
  const xs = all.map(([x]) => x);
  const ys = [...all.flatMap(([, ...values]) => values), ...(guess === null ? [] : [guess])];
  const range = around(xs);
  const whole = isWhole ? ticksOf(range).filter(Number.isInteger) : undefined;
  const chart = axes({ range, label: t(LABELS[xLabel]), ticks: ticks ?? whole }, { range: yRange ?? around(ys), label: t(LABELS[yLabel]) }, width);
  const { svg, toX, toY } = chart;
  if (guess !== null) svg.append(guessing({ x1: chart.left, x2: chart.right, y1: toY(guess), y2: toY(guess) }));
  for (const { system, name, points } of series) {
    const stroke = seriesColor(system);
    const hasMarks = points[0]?.length > 2;
    svg.append(makeSvg("path", { d: points.map(([x, y], place) => `${place ? "L" : "M"}${toX(x).toFixed(1)} ${toY(y).toFixed(1)}`).join(""), fill: "none", stroke, "stroke-width": hasMarks ? 1 : 2 }));
    for (const [x, value, low, high] of hasMarks ? points : []) {
      svg.append(makeSvg("line", { x1: toX(x), x2: toX(x), y1: toY(low), y2: toY(high), stroke, "stroke-width": 2 }),
        mark(system, toX(x), toY(value), intervalText(name, value, low, high)));
    }
  }
  return svg;
}

const intervalText = (name, value, low, high) => `${name}: ${three(value)} [${three(low)}, ${three(high)}]`;

/** Accuracies of several systems in bins from top to bottom, with intervals: values are [value, low, high] or null. */
function binsChart({ bins, series, guess }, width) {
  const left = Math.min(168, 0.34 * width);
  const longest = Math.floor(left / CHARACTER);
  const step = series.length * BIN.line + BIN.gap;
  const height = AROUND.top + bins.length * step + AROUND.bottom;
  const names = bins.map((name) => (name.length > longest ? `${name.slice(0, longest - 1)}…` : name));
  const chart = axes({ range: [-0.02, 1.02], label: t("report.accuracy_axis") },
    { range: [-bins.length, 0], ticks: bins.map((_, place) => -place - 0.5), text: (tick) => names[-tick - 0.5], isPlain: true }, width, height, left);
  const { svg, toX, toY } = chart;
  svg.append(guessing({ x1: toX(guess), x2: toX(guess), y1: AROUND.top, y2: chart.bottom }));
  series.forEach(({ system, name, values }, place) => values.forEach((value, bin) => {
    if (value === null) return;
    const y = toY(-bin - 0.5) + (place - (series.length - 1) / 2) * BIN.line;
    const [accuracy, low, high] = value;
    svg.append(makeSvg("line", { x1: toX(low), x2: toX(high), y1: y, y2: y, stroke: seriesColor(system), "stroke-width": 2 }),
      mark(system, toX(accuracy), y, intervalText(name, accuracy, low, high)));
  }));
  return svg;
}

/** How often values of several kinds occur between edges, and their means. */
function histogramChart({ edges, series }, width) {
  const most = Math.max(...series.flatMap(({ counts }) => counts));
  const { svg, toX, toY } = axes({ range: around([edges[0], edges.at(-1)], 0.02), label: t("report.distance_axis") },
    { range: [0, 1.08 * most], label: t("report.triples_axis") }, width);
  for (const { kind, counts, mean } of series) {
    const fill = seriesColor(kind);
    counts.forEach((count, bin) => count && svg.append(makeSvg("rect", { x: toX(edges[bin]), y: toY(count), fill, "fill-opacity": 0.35,
      width: toX(edges[bin + 1]) - toX(edges[bin]), height: toY(0) - toY(count) }, makeSvg("title", {}, count))));
    svg.append(makeSvg("line", { x1: toX(mean), x2: toX(mean), y1: toY(0), y2: AROUND.top, stroke: fill, "stroke-width": 3 }));
  }
  return svg;
}

/** Triples as triangles: circle, small triangle and cross stand for anchor, closer and other candidate. */
function trianglesChart({ triples }, width) {
  const height = SIZE.plane * width;
  const range = (axis) => around(triples.flatMap(({ points }) => points.map((point) => point[axis])));
  const [[left, right], [low, high]] = [range(0), range(1)];
  const place = ([x, y]) => [12 + ((x - left) / (right - left)) * (width - 24), height - 12 - ((y - low) / (high - low)) * (height - 24)];
  const svg = makeSvg("svg", { class: "chart triangles", role: "img", width, height, viewBox: `0 0 ${width} ${height}`, ...FONT },
    makeSvg("rect", { width, height, fill: color("--paper") }));
  const fills = [color("--wrong"), color("--right")];
  triples.forEach(({ points, right: isRight }, number) => {
    const [anchor, closer, other] = points.map(place);
    const fill = fills[Number(isRight)];
    svg.append(makeSvg("g", { class: "triple", "data-triple": number, stroke: fill, fill },
      makeSvg("path", { d: `M${anchor}L${closer}L${other}z`, "fill-opacity": 0, "stroke-opacity": 0.2 }),
      makeSvg("path", { d: "M0 -3.5L3.5 2.5H-3.5z", transform: `translate(${closer})` }),
      makeSvg("path", { d: "M-3 -3L3 3M3 -3L-3 3", transform: `translate(${other})` }),
      makeSvg("circle", { cx: anchor[0], cy: anchor[1], r: 5 })));
  });
  return svg;
}

const LABELS = { epochs: "report.epochs_axis", validation: "report.validation_axis", loss: "report.loss_axis", margin: "report.margin_axis", accuracy: "report.accuracy_axis" };

/** What the colors of a chart stand for. */
export function chartKey(names, colors) {
  return make("ul", { class: "key" }, names.map((name, number) =>
    make("li", {}, make("i", { styles: { background: colors[number] } }), name)));
}
