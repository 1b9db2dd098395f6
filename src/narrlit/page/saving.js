// Files that the browser writes itself: pictures as SVG and PNG, and tables.

import { make } from "./dom.js";

/** Largest width or height of a PNG picture in pixels, as far as browsers draw it. */
const LARGEST = 12_000;

/** Save a file under a name. */
export function saveFile(content, name) {
  const link = make("a", { href: URL.createObjectURL(content), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

const written = (svg) => new XMLSerializer().serializeToString(svg);

/** Save an SVG element as a drawing. */
export function saveSvg(svg, name) {
  saveFile(new Blob([`<?xml version="1.0" encoding="UTF-8"?>\n${written(svg)}`], { type: "image/svg+xml" }), `${name}.svg`);
}

/** Save an SVG element as a picture of twice its size in pixels. */
export async function savePng(svg, name) {
  const [width, height] = ["width", "height"].map((side) => Number(svg.getAttribute(side)));
  const scale = Math.min(2, LARGEST / Math.max(width, height));
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(written(svg))}`;
  await image.decode();
  const canvas = make("canvas", { width: Math.round(width * scale), height: Math.round(height * scale) });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  saveFile(await new Promise((resolve) => canvas.toBlob(resolve)), `${name}.png`);
}
