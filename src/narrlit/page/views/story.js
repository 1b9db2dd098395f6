// A story in full, and its nearest stories beside it.

import { address } from "../address.js";
import { get, path } from "../api.js";
import { joinedLines, make } from "../dom.js";
import { confoundNote } from "../confounds.js";
import { editButton } from "../edits.js";
import { titleOf } from "../labels.js";
import { markedText, notesPanel } from "../notes.js";
import { linkButton, listButton, metadataLine, storyLink } from "../parts.js";
import { notesOf, whenChanged } from "../project.js";
import { scaleNote, standingLine } from "../standing.js";
import { counted, lengthText, t } from "../texts.js";

export async function storyView({ collection, ids, params, signal }) {
  const story = await get(path("collections", collection.name, "stories", ids[0]), signal);
  const most = Math.max(...story.nearest.map((each) => each.similarity), 0);
  const text = make("p", { class: "text" });
  const mark = () => text.replaceChildren(...markedText(joinedLines(story.text), [passage, ...notesOf(collection.name, story.id).map((note) => ({ ...note, kind: "noted" }))]));
  const passage = { start: Number(params.get("from")), end: Number(params.get("to")), kind: "passage" };
  mark();
  whenChanged(mark, signal);
  const form = make("div", {});
  if (passage.end > passage.start) setTimeout(() => text.querySelector("mark.passage")?.scrollIntoView({ block: "center" }));
  const view = make("div", { class: "reading" },
    make("article", {},
      make("h1", {}, story.title || story.id),
      metadataLine(story.metadata),
      make("p", { class: "meta" }, lengthText(story)),
      make("p", { class: "actions" },
        linkButton(t("story.like"), address(collection.name, "search", [], { like: story.id })),
        listButton(collection, story, signal), editButton(collection, story, form)),
      form, text, notesPanel(collection, story, text, signal)),
    make("aside", { "aria-labelledby": "nearest" },
      make("h2", { id: "nearest" }, t("story.nearest")),
      story.nearest.length === 0 ? make("p", {}, t("story.alone")) : null,
      make("ol", { class: "nearest" }, story.nearest.map((near) => nearest(collection, story, near, most)))));
  if (story.nearest.length) view.querySelector("ol.nearest").before(scaleNote(collection, view, signal), confoundNote(collection, signal));
  return view;
}

function nearest(collection, story, near, most) {
  const title = titleOf(collection, near);
  return make("li", {},
    make("h3", {}, storyLink(collection, near)),
    standingLine(near.standing, near.similarity, most),
    near.snippet ? make("p", { class: "snippet" }, near.snippet) : null,
    make("p", {}, make("a", {
      href: address(collection.name, "compare", [story.id, near.id]),
      "aria-label": t("story.compare_with", { title }),
    }, t("action.compare"))));
}
