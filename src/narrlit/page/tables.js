// Tables that are sorted by a click on the head of a column.

import { make } from "./dom.js";
import { button } from "./parts.js";
import { language } from "./texts.js";

/**
 * A table of rows.
 *
 * `columns` are {name, value, cell}: the name, the value by which rows are sorted, and what is shown, if it is another.
 */
export function sortableTable(columns, rows) {
  const body = make("tbody", {});
  const lines = rows.map((row) => [row, make("tr", {}, columns.map(({ name, value, cell }) =>
    make("td", { "data-name": name, class: NUMBER.test(textOf(value(row))) ? "one-line" : null }, cell ? cell(row) : textOf(value(row)))))]);
  const heads = columns.map((column, place) => make("th", { scope: "col" },
    button(column.name, () => sortBy(place), { class: "sort" })));
  let sorted = { place: -1, direction: 1 };

  function sortBy(place) {
    sorted = { place, direction: sorted.place === place ? -sorted.direction : 1 };
    const { value } = columns[place];
    lines.sort(([one], [other]) => sorted.direction * compare(value(one), value(other)));
    heads.forEach((head, at) => {
      if (at === place) head.setAttribute("aria-sort", sorted.direction > 0 ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    });
    body.append(...lines.map(([, line]) => line));
  }

  body.append(...lines.map(([, line]) => line));
  return make("table", { class: "sortable" }, make("thead", {}, make("tr", {}, heads)), body);
}

/** Text of a cell that is not divided into lines. */
const NUMBER = /^[-+]?[\d.,]+%?$/;
const textOf = (value) => (value === null || value === undefined ? "" : String(value));

/** Numbers by size, texts as the language sorts them, missing values last. */
function compare(one, other) {
  const missing = [one, other].map((value) => value === null || value === undefined || value === "");
  if (missing[0] || missing[1]) return missing[0] - missing[1];
  if (typeof one === "number" && typeof other === "number") return one - other;
  return String(one).localeCompare(String(other), language, { numeric: true });
}
