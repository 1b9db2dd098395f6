// Colors of stories by the values of a column.

import { color } from "./dom.js";
import { t } from "./texts.js";

const PALETTE = Array.from({ length: 9 }, (_, number) => `--category-${number}`);
const SEQUENCE = Array.from({ length: 7 }, (_, number) => `--sequence-${number}`);

/**
 * Color values: one color a value, the most frequent first, or by rank for many numbers.
 *
 * `missing` is the name of the color of stories without a value. Returns the colors, and a key of {color, name, has},
 * where has(value) finds the values of a color.
 */
export function colorsOf(values, missing) {
  const counts = new Map();
  for (const value of values) if (!isMissing(value)) counts.set(value, (counts.get(value) ?? 0) + 1);
  const names = [...counts.keys()];
  const isScale = names.length > PALETTE.length && names.every((name) => isFinite(name));
  const key = isScale ? rankKey(names) : frequencyKey(names, counts);
  if (values.some(isMissing)) key.push({ color: color("--missing"), name: missing, has: isMissing });
  return { colors: values.map((value) => key.find((each) => each.has(value)).color), key };
}

/** The most frequent values, then all others together. */
function frequencyKey(names, counts) {
  names.sort((a, b) => counts.get(b) - counts.get(a) || String(a).localeCompare(String(b), undefined, { numeric: true }));
  const key = names.slice(0, PALETTE.length).map((name, place) =>
    ({ color: color(PALETTE[place]), name: String(name), has: (value) => value === name }));
  const others = new Set(names.slice(PALETTE.length));
  if (others.size) key.push({ color: color("--none"), name: t("map.other"), has: (value) => others.has(value) });
  return key;
}

/** Numbers by rank, in as many parts as there are colors. */
function rankKey(names) {
  names.sort((a, b) => a - b);
  const step = SEQUENCE.length / names.length;
  const rank = new Map(names.map((name, place) => [name, Math.floor(place * step)]));
  return SEQUENCE.map((name, place) => {
    const inside = names.filter((each) => rank.get(each) === place);
    return { color: color(name), name: `${inside[0]} – ${inside.at(-1)}`, has: (value) => rank.get(value) === place };
  });
}

const isMissing = (value) => value === null || value === undefined || value === "";
