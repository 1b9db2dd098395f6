// A second label beside titles, such as the author or the year, which tells versions with one title apart.

import { make } from "./dom.js";
import { settingOf } from "./project.js";

const NONE = "";

/** The column whose value stands beside titles: the chosen one, or the one that tells equal titles apart; "" for none. */
export function labelColumn(collection) {
  const chosen = settingOf(collection.name, "label") ?? collection.label ?? NONE;
  return collection.columns.some((column) => column.name === chosen) ? chosen : NONE;
}

/** The second label of a story as text; "" if it has none. */
export function secondLabel(collection, story) {
  const value = story.metadata?.[labelColumn(collection)];
  return value === null || value === undefined ? "" : String(value);
}

/** The title of a story with its second label, as text. */
export function titleOf(collection, story) {
  const label = secondLabel(collection, story);
  const title = story.title || story.id;
  return label ? `${title} (${label})` : title;
}

/** The second label as an element; null if there is none. */
export function labelPart(collection, story) {
  const label = secondLabel(collection, story);
  return label ? make("small", { class: "second" }, label) : null;
}
