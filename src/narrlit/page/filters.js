// Filters by the values of columns, as chips with counts.

import { address } from "./address.js";
import { make } from "./dom.js";
import { button } from "./parts.js";
import { number, t } from "./texts.js";

/** Before the name of a column in an address: in.country=France. */
const PREFIX = "in.";
/** Values of a column that are shown at once. */
const SHOWN = 8;

/** Read the chosen values of each column from an address, as text: the server knows the types of columns. */
export function filtersOf(params) {
  const filters = {};
  for (const [name, value] of params) {
    if (!name.startsWith(PREFIX)) continue;
    const column = name.slice(PREFIX.length);
    (filters[column] ??= []).push(value);
  }
  return filters;
}

/** Chips of all columns whose values are shared by several stories. */
export function filterChips(collection, params) {
  const columns = collection.columns.filter((column) => column.distinct > 1 && column.values[0]?.count > 1);
  if (columns.length === 0) return "";
  const chosen = filtersOf(params);
  return make("section", { class: "filters", "aria-label": t("filters.title") },
    columns.map((column) => columnChips(collection, params, column, chosen[column.name] ?? [])));
}

function columnChips(collection, params, column, chosen) {
  const chips = column.values.map(({ value, count }) => {
    const on = chosen.includes(String(value));
    const label = [make("span", {}, String(value)), make("small", {}, number(count))];
    return button(label, () => toggleValue(collection, params, column.name, String(value)),
      { class: "chip", "aria-pressed": on, id: `chip-${column.name}-${value}` });
  });
  const isShown = (chip, place) => place < SHOWN || chip.getAttribute("aria-pressed") === "true";
  const hidden = chips.filter((chip, place) => !isShown(chip, place));
  const group = make("div", { class: "chips", role: "group", "aria-label": column.name },
    make("b", {}, column.name), chips.filter(isShown));
  const more = button(t("filters.more", { n: number(hidden.length) }), () => more.replaceWith(...hidden), { class: "chip quiet" });
  if (hidden.length) group.append(more);
  return group;
}

function toggleValue(collection, params, column, value) {
  const next = new URLSearchParams();
  let present = false;
  for (const [name, each] of params) {
    if (name === "offset") continue;
    if (name === PREFIX + column && each === value) present = true;
    else next.append(name, each);
  }
  if (!present) next.append(PREFIX + column, value);
  location.hash = address(collection.name, "search", [], next);
}
