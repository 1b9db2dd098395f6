// Elements, built without markup: texts of stories are only ever text nodes.

const SVG = "http://www.w3.org/2000/svg";

/**
 * Create an HTML element.
 *
 * Attributes that are null, undefined or false are left out, true is an empty attribute (but "true" and "false" in
 * "aria-" attributes), "onclick" and the like add a listener, and "styles" sets CSS properties one by one, which the
 * content security policy allows.
 */
export function make(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** Create an SVG element, with attributes as in `make`. */
export function makeSvg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined) continue;
    if (name.startsWith("aria-")) element.setAttribute(name, value);
    else if (value === false) continue;
    else if (name === "styles") setStyles(element, value);
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(2).filter((child) => child !== null && child !== undefined));
  return element;
}

/** Set CSS properties of an element. */
export function setStyles(element, styles) {
  for (const [name, value] of Object.entries(styles)) element.style.setProperty(name, value);
}

/** Read a color of the style sheet, by the name of its property, as [red, green, blue]. */
export function channels(name) {
  const probe = make("i", { hidden: true, styles: { color: `var(${name})` } });
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value.match(/\d+/g).slice(0, 3).map(Number);
}

/** Read a color of the style sheet, by the name of its property. */
export const color = (name) => `rgb(${channels(name).join(", ")})`;

/** Tell screen readers what has happened. */
export function announce(text) {
  document.getElementById("announcement").textContent = text;
}

/** Wait; the promise is rejected when the view is left. */
export function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

/** Cut characters of a text as Python counts them: code points, not UTF-16 units. */
export function characters(text, start, end) {
  return Array.from(text).slice(start, end).join("");
}

/** Characters of the longest line of a text that was broken at a fixed width; shorter lines are verse. */
const WIDTHS = [55, 100];

/** Join the lines of a text that was broken at a fixed width, as in old plain-text files; its length does not change. */
export function joinedLines(text) {
  const lines = text.split("\n").map((line) => line.trimEnd());
  const width = Math.max(...lines.map((line) => line.length));
  if (width < WIDTHS[0] || width > WIDTHS[1]) return text;
  const isFull = (line, place) => line && lines[place + 1] && line.length + 1 + lines[place + 1].trimStart().split(" ")[0].length > width;
  const inside = lines.filter((line, place) => line && lines[place + 1]).length;
  const full = lines.filter(isFull).length;
  return full > 0.9 * inside ? text.replace(/(\S[^\S\n]*)\n(?=[^\S\n]*\S)/g, "$1 ") : text;
}
