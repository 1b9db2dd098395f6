// What drawings of maps share: a ground, lines, texts and the key of colors.

import { color, make, makeSvg } from "./dom.js";

const FONT = "12px system-ui, sans-serif";
/** Pixels around a drawing, and between two entries of its key. */
const MARGIN = 12;
/** A line whose width does not depend on the scale. */
export const LINE = { fill: "none", "vector-effect": "non-scaling-stroke" };

let brush;
/** The width of a text in a drawing, in pixels. */
export function textWidth(text) {
  brush ??= make("canvas").getContext("2d");
  brush.font = FONT;
  return brush.measureText(text).width;
}

/** Parts on the ground of the page, with a margin. */
export function drawingOf(parts, width, height) {
  const [across, down] = [Math.ceil(width) + 2 * MARGIN, Math.ceil(height) + 2 * MARGIN];
  return makeSvg("svg", { width: across, height: down, viewBox: `0 0 ${across} ${down}`, "font-family": "system-ui, sans-serif", "font-size": 12 },
    makeSvg("rect", { width: across, height: down, fill: color("--paper") }),
    makeSvg("g", { transform: `translate(${MARGIN} ${MARGIN})` }, parts.flat(3)));
}

/** The names of the colors, in lines from y on. Returns the element and its height. */
export function keyOf(key, y, width) {
  const element = makeSvg("g", { class: "key" });
  let [x, down] = [0, 0];
  for (const { color: fill, name } of key) {
    const size = textWidth(name) + 34;
    if (x > 0 && x + size > width) [x, down] = [0, down + 18];
    element.append(makeSvg("rect", { x, y: y + down, width: 11, height: 11, fill }),
      makeSvg("text", { x: x + 16, y: y + down + 10, fill: color("--ink") }, name));
    x += size;
  }
  return { element, height: key.length ? down + 18 : 0 };
}
