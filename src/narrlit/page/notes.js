// Notes and tags on stories and their passages.

import { characters, make } from "./dom.js";
import { button, field } from "./parts.js";
import { notesOf, tagsOf, whenChanged, writeNote } from "./project.js";
import { t } from "./texts.js";

/** The notes on a story, with a form for another one; `text` is the element with the story, whose passages can be selected. */
export function notesPanel(collection, story, text, signal) {
  const panel = make("section", { class: "notes", "aria-labelledby": "notes" });
  const list = make("ul", { class: "cards" });
  const place = make("div", {});
  const edit = (where, note) => place.replaceChildren(noteForm(collection, story, where, note, () => place.replaceChildren()));
  const onStory = button(t("notes.on_story"), () => edit({}, notesOf(collection.name, story.id).find((note) => note.start === null)), { id: "note" });
  const onPassage = button(t("notes.on_passage"), () => edit(passageOf(text)), { id: "note-passage", disabled: true });
  const update = () => list.replaceChildren(...notesOf(collection.name, story.id).map((note) =>
    make("li", {}, noteParts(note), make("p", { class: "actions" }, button(t("notes.edit"), () => edit(note, note))))));
  document.addEventListener("selectionchange", () => (onPassage.disabled = passageOf(text) === null), { signal });
  whenChanged(update, signal);
  update();
  panel.append(make("h2", { id: "notes" }, t("notes.title")), list, make("p", { class: "actions" }, onStory, onPassage),
    make("p", { class: "meta" }, t("notes.how")), place);
  return panel;
}

/** What a note says, with its passage and tags. */
export function noteParts({ passage, text, tags }) {
  return [
    passage ? make("blockquote", {}, passage) : null,
    text ? make("p", { class: "note" }, text) : null,
    tags.length ? make("p", { class: "tags" }, tags.map((tag) => make("span", { class: "tag" }, tag))) : null,
  ];
}

function noteForm(collection, story, where, note, close) {
  const words = make("textarea", { id: "note-text", rows: 4 });
  words.value = note?.text ?? "";
  const known = make("datalist", { id: "known-tags" }, tagsOf(collection.name).map((tag) => make("option", { value: tag })));
  const tags = make("input", { id: "note-tags", value: (note?.tags ?? []).join(", "), list: "known-tags" });
  const write = (text, labels) => {
    writeNote(collection.name, { id: story.id, title: story.title, metadata: story.metadata }, where, text, labels);
    close();
  };
  const form = make("form", { class: "note-form" },
    where.passage ? make("blockquote", {}, where.passage) : null,
    field(t("notes.text"), words), field(t("notes.tags"), tags), known,
    make("p", { class: "actions" },
      make("button", { type: "submit", class: "primary" }, t("notes.save")),
      note ? button(t("notes.remove"), () => write("", []), { class: "quiet" }) : null,
      button(t("action.cancel"), close, { class: "quiet" })));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    write(words.value.trim(), [...new Set(tags.value.split(",").map((tag) => tag.trim()).filter(Boolean))]);
  });
  setTimeout(() => words.focus());
  return form;
}

/** The selected passage of a text, with its place in characters; null if nothing of it is selected. */
function passageOf(text) {
  const selection = getSelection();
  if (selection.rangeCount === 0 || selection.isCollapsed) return null;
  const range = selection.getRangeAt(0);
  if (!text.contains(range.startContainer) || !text.contains(range.endContainer)) return null;
  const before = document.createRange();
  before.setStart(text, 0);
  before.setEnd(range.startContainer, range.startOffset);
  const start = Array.from(before.toString()).length;
  const passage = range.toString();
  return passage.trim() ? { start, end: start + Array.from(passage).length, passage } : null;
}

/** A text with passages marked: those of notes, and the one that led here. */
export function markedText(text, marks) {
  const length = Array.from(text).length;
  const inside = marks.filter(({ start, end }) => start !== null && end > start);
  const edges = [...new Set([0, length, ...inside.flatMap(({ start, end }) => [start, Math.min(end, length)])])].sort((a, b) => a - b);
  return edges.slice(1).map((end, place) => {
    const start = edges[place];
    const part = characters(text, start, end);
    const kinds = inside.filter((mark) => mark.start <= start && mark.end >= end).map((mark) => mark.kind);
    return kinds.length ? make("mark", { class: kinds.join(" ") }, part) : part;
  });
}
