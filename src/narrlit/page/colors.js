// Colors of stories by the values of a column.

import { color } from "./dom.js";
import { t } from "./texts.js";

const PALETTE = Array.from({ length: 9 }, (_, number) => `--category-${number}`);
const SEQUENCE = Array.from({ length: 7 }, (_, number) => `--sequence-${number}`);

/**
 * Color values: one color a value, the most frequent first, or by rank for many numbers.
 *
 * Returns the colors, and a key of {color, name, has}, where has(value) finds the values of a color.
 */
export function colorsOf(values) {
  const none = color("--none");
  const counts = new Map();
  for (const value of values) if (!isMissing(value)) counts.set(value, (counts.get(value) ?? 0) + 1);
  const names = [...counts.keys()];
  if (names.length > PALETTE.length && names.every((name) => isFinite(name))) return byRank(values, names, none);

  names.sort((a, b) => counts.get(b) - counts.get(a) || String(a).localeCompare(String(b), undefined, { numeric: true }));
  const key = names.slice(0, PALETTE.length).map((name, place) =>
    ({ color: color(PALETTE[place]), name: String(name), has: (value) => value === name }));
  const known = new Map(names.slice(0, PALETTE.length).map((name, place) => [name, key[place].color]));
  const others = (value) => !known.has(value);
  if (values.some(others)) key.push({ color: none, name: t("map.other"), has: others });
  return { colors: values.map((value) => known.get(value) ?? none), key };
}

function byRank(values, names, none) {
  names.sort((a, b) => a - b);
  const palette = SEQUENCE.map(color);
  const step = palette.length / names.length;
  const rank = new Map(names.map((name, place) => [name, Math.floor(place * step)]));
  const key = palette.map((each, place) => {
    const inside = names.filter((name) => rank.get(name) === place);
    return { color: each, name: `${inside[0]} – ${inside.at(-1)}`, has: (value) => rank.get(value) === place };
  });
  if (values.some(isMissing)) key.push({ color: none, name: t("map.other"), has: isMissing });
  return { colors: values.map((value) => palette[rank.get(value)] ?? none), key };
}

const isMissing = (value) => value === null || value === undefined || value === "";
