// Values of columns that a reader writes: into one story, or into all of a list.

import { make } from "./dom.js";
import { attempt, button, field } from "./parts.js";
import { writeValues } from "./project.js";
import { t } from "./texts.js";

/** Take the addresses' views anew: columns, filters and titles may have changed. */
const redraw = () => dispatchEvent(new Event("hashchange"));

/** A button that opens a form with the title and all columns of a story in `place`. */
export function editButton(collection, story, place) {
  return button(t("edit.open"), () => {
    place.replaceChildren(storyForm(collection, story, () => place.replaceChildren()));
    place.querySelector("input").focus();
  }, { id: "edit" });
}

function storyForm(collection, story, close) {
  const present = { title: story.title, ...story.metadata };
  const inputs = ["title", ...collection.columns.map((column) => column.name)].map((name, place) => {
    const value = String(present[name] ?? "");
    return { name, value, ...valueField(collection, name, name === "title" ? t("sort.title") : name, `edit-${place}`, value) };
  });
  const added = newColumn(collection);
  return form([...inputs.map((each) => each.field), ...added.fields], close, () => {
    const changed = inputs.filter(({ input, value }) => input.value.trim() !== value).map(({ name, input }) => [name, input.value.trim()]);
    return write(collection, [story.id], [...changed, ...added.values()]);
  });
}

/** A form that writes one value into a column of many stories. */
export function editAll(collection, stories) {
  const added = newColumn(collection);
  const details = make("details", { class: "edit-all" }, make("summary", {}, t("edit.all")));
  const close = () => (details.open = false);
  details.append(form(added.fields, close, () => write(collection, stories.map((story) => story.id), added.values())));
  return details;
}

function form(fields, close, send) {
  const element = make("form", { class: "tools edit" }, fields, make("p", { class: "actions" },
    make("button", { type: "submit", class: "primary" }, t("notes.save")),
    button(t("action.cancel"), close, { class: "quiet" })));
  element.addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(element, send);
  });
  return element;
}

async function write(collection, ids, values) {
  if (values.length) await writeValues(collection.name, ids, Object.fromEntries(values));
  redraw();
}

/** Fields for a column, present or new, and its value. */
function newColumn(collection) {
  const names = make("datalist", { id: "edit-columns" }, collection.columns.map((column) => make("option", { value: column.name })));
  const name = make("input", { id: "edit-column", list: "edit-columns", maxlength: 200 });
  const value = valueField(collection, "", t("edit.value"), "edit-value", "");
  name.addEventListener("change", () => value.offer(name.value.trim()));
  return { fields: [field(t("edit.column"), name), names, value.field], values: () => (name.value.trim() ? [[name.value.trim(), value.input.value.trim()]] : []) };
}

/** A field for a value, which offers the values of the column. */
function valueField(collection, name, label, id, value) {
  const known = make("datalist", { id: `${id}-known` });
  const input = make("input", { id, value, list: known.id });
  const offer = (column) => known.replaceChildren(...(collection.columns.find((each) => each.name === column)?.values ?? [])
    .map((each) => make("option", { value: String(each.value) })));
  offer(name);
  return { field: make("div", {}, field(label, input), known), input, offer };
}
