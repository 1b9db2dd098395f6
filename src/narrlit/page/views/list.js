// A reader's work on a collection: lists of stories, notes, the last changes, and all of it as a file.

import { address, keepInAddress } from "../address.js";
import { download } from "../api.js";
import { announce, make } from "../dom.js";
import { editAll } from "../edits.js";
import { labelColumn, titleOf } from "../labels.js";
import { noteParts } from "../notes.js";
import { attempt, button, confirmed, emptyState, field, linkButton, select, storyLink } from "../parts.js";
import { historyOf, importProject, notesOf, projectFile, projectOf, step, tagsOf, whenChanged } from "../project.js";
import { DECISION_TEXTS } from "../reader.js";
import { selectionPanel } from "../selection_panel.js";
import {
  addStories, chosenStories, currentList, currentTitle, deleteList, listNames, listTitle, renameList, useList, whenChosen,
} from "../selection.js";
import { sortableTable } from "../tables.js";
import { counted, t } from "../texts.js";

export async function listView({ collection, params, signal }) {
  if (params.has("list")) useList(collection.name, params.get("list"));
  return make("div", {}, make("h1", {}, t("work.title")),
    lists(collection, signal), notes(collection, params, signal), await changes(collection, signal), file(collection));
}

// Lists --------------------------------------------------------------------------------------------------------------

function lists(collection, signal) {
  const { name } = collection;
  const place = make("section", { "aria-label": t("work.lists") });
  let drawn = new AbortController();
  signal.addEventListener("abort", () => drawn.abort());
  const draw = () => {
    drawn.abort();
    drawn = new AbortController();
    const focused = document.activeElement?.id;
    const names = listNames(name).map((each) => [each, `${listTitle(each)} (${chosenStories(name, each).length})`]);
    const use = (chosen) => {
      keepInAddress({ list: chosen });
      useList(name, chosen);
    };
    const chosen = chosenStories(name);
    place.replaceChildren(...[
      make("div", { class: "tools" }, field(t("work.list"), select(names, currentList(name), use, { id: "list" })), newList(use, (chosen) => {
        keepInAddress({ list: chosen });
        renameList(name, chosen);
      }),
        names.length > 1 || chosen.length ? button(t("work.delete_list"), () => remove(name), { class: "quiet", id: "delete-list" }) : null),
      chosen.length === 0
        ? emptyState(t("list.none"), t("list.none_text"), linkButton(t("nav.search"), address(name, "search")), linkButton(t("nav.map"), address(name, "map")))
        : make("div", { class: "beside" }, make("div", { class: "wide" }, storyTable(collection, chosen), editAll(collection, chosen)), selectionPanel(collection, drawn.signal, false))]);
    if (focused) document.getElementById(focused)?.focus();
  };
  whenChosen(draw, signal);
  draw();
  return place;
}

/** A field for the name of a new list, or for another one of the list in use. */
function newList(use, rename) {
  const name = make("input", { id: "new-list", maxlength: 100, required: true, autocomplete: "off" });
  const form = make("form", { class: "tools" }, field(t("work.new_list"), name), make("button", { type: "submit" }, t("work.create")),
    make("button", { type: "submit", class: "quiet", value: "rename" }, t("work.rename")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const act = event.submitter?.value === "rename" ? rename : use;
    if (name.value.trim()) act(name.value.trim());
  });
  return form;
}

async function remove(name) {
  if (!await confirmed(t("work.delete_question", { list: currentTitle(name) }), t("action.delete"))) return;
  keepInAddress({ list: null });
  deleteList(name);
}

/** The stories of a list with their columns, tags and notes. */
function storyTable(collection, stories) {
  const tags = (story) => [...new Set(notesOf(collection.name, story.id).flatMap((note) => note.tags))].join(", ");
  const columns = [{ name: t("work.story"), value: (story) => titleOf(collection, story), cell: (story) => storyLink(collection, story) }];
  for (const column of collection.columns) {
    if (column.distinct < collection.stories && column.name !== labelColumn(collection)) {
      columns.push({ name: column.name, value: (story) => story.metadata[column.name] });
    }
  }
  columns.push({ name: t("notes.title"), value: (story) => notesOf(collection.name, story.id).length, cell: (story) =>
    [tags(story), ...notesOf(collection.name, story.id).map((note) => note.text)].filter(Boolean).join(" · ") });
  return sortableTable(columns, stories);
}

// Notes --------------------------------------------------------------------------------------------------------------

function notes(collection, params, signal) {
  const place = make("section", { "aria-labelledby": "all-notes" });
  let tag = params.get("tag");
  const draw = () => {
    const shown = notesOf(collection.name).filter((note) => !tag || note.tags.includes(tag));
    const choose = (each) => {
      tag = tag === each ? null : each;
      keepInAddress({ tag });
      draw();
    };
    const tags = tagsOf(collection.name);
    const chips = tags.map((each) => button(each, () => choose(each), { class: "chip", "aria-pressed": each === tag }));
    const stories = [...new Map(shown.map((note) => [note.story.id, note.story])).values()];
    place.replaceChildren(...[make("h2", { id: "all-notes" }, counted("notes.count", shown.length)),
      tags.length ? make("div", { class: "chips", role: "group", "aria-label": t("notes.tags_group") }, chips) : "",
      shown.length
        ? make("p", { class: "actions" }, button(counted("map.choose", stories.length, { list: currentTitle(collection.name) }), () => addStories(collection.name, stories)))
        : make("p", {}, t("notes.none")),
      make("ul", { class: "cards" }, shown.map((note) => make("li", {}, make("h3", {}, storyLink(collection, note.story,
        note.start === null ? {} : { from: note.start, to: note.end })), noteParts(note))))]);
  };
  whenChanged(draw, signal);
  draw();
  return place;
}

// Changes ------------------------------------------------------------------------------------------------------------

async function changes(collection, signal) {
  const { name } = collection;
  const place = make("section", { "aria-labelledby": "changes" });
  const move = (direction) => attempt(place, () => step(name, direction));
  const draw = async () => {
    const { changes: list, stories } = await historyOf(name, signal);
    const titles = new Map(stories.map((story) => [story.id, titleOf(collection, story)]));
    const focused = document.activeElement?.id;
    place.replaceChildren(make("h2", { id: "changes" }, t("work.changes")),
      make("p", { class: "actions" },
        button(t("work.undo"), () => move("undo"), { id: "undo", disabled: list.length === 0 }),
        button(t("work.redo"), () => move("redo"), { id: "redo", disabled: !projectOf(name).can_redo })),
      make("ol", { class: "history" }, list.map((change) => make("li", {},
        changeText(change, titles), " ", make("small", { class: "meta" }, change.at ? new Date(change.at).toLocaleString() : "")))));
    if (focused === "undo" || focused === "redo") document.getElementById(focused)?.focus();
  };
  whenChanged(() => draw().catch(() => null), signal);
  await draw();
  return place;
}

function changeText(change, titles) {
  const title = (id) => titles.get(id) ?? id;
  switch (change.kind) {
    case "pair": {
      const decision = change.decision ? t(DECISION_TEXTS[change.decision]) : t("work.withdrawn");
      return t("work.pair", { left: title(change.id_a), right: title(change.id_b), decision, reader: change.reader });
    }
    case "value":
      if (change.accepted === null) return t("work.value_withdrawn", { column: change.column, title: title(change.id) });
      return change.accepted
        ? t("work.value", { column: change.column, value: change.value, title: title(change.id) })
        : t("work.value_rejected", { column: change.column, title: title(change.id) });
    case "list": {
      const list = listTitle(change.name);
      if (change.deleted) return t("work.list_deleted", { list });
      const count = change.add.length ? counted("work.added", change.add.length, { list }) : counted("work.removed", change.remove.length, { list });
      const names = [...change.add, ...change.remove].slice(0, 3).map(title).join(", ");
      return `${count} ${names}`;
    }
    case "edit": {
      const values = Object.entries(change.values).map(([column, value]) => `${column} ${value || "–"}`).join(", ");
      return t("edit.change", { values, stories: change.ids.length === 1 ? title(change.ids[0]) : counted("stories", change.ids.length) });
    }
    case "note":
      return t(change.text || change.tags.length ? "work.note" : "work.note_removed", { title: title(change.id) });
    default:
      return t(change.name === "label" ? "work.label" : "work.color", { value: change.value || "–" });
  }
}

// File ---------------------------------------------------------------------------------------------------------------

/** Save all of it as one file, or add the work in another one. */
function file(collection) {
  const { name } = collection;
  const place = make("section", { class: "panel" }, make("h2", {}, t("work.file")), make("p", {}, t("work.file_text")));
  const input = make("input", { type: "file", id: "project-file", class: "unseen", accept: ".jsonl" });
  input.addEventListener("change", () => attempt(place, async () => {
    const count = await importProject(name, input.files[0]);
    announce(counted("work.imported", count));
    place.querySelector(".banner")?.remove();
    place.append(make("p", { class: "banner" }, counted("work.imported", count)));
    input.value = "";
  }));
  place.append(make("p", { class: "actions" },
    button(t("work.save"), () => attempt(place, () => download("GET", projectFile(name))), { id: "save-project" }),
    make("label", { class: "button", for: "project-file" }, t("work.load"), input)));
  return place;
}
