// A story in full, and its nearest stories beside it.

import { address } from "../address.js";
import { get, path } from "../api.js";
import { characters, make } from "../dom.js";
import { titleOf } from "../labels.js";
import { linkButton, listButton, metadataLine, storyLink } from "../parts.js";
import { scaleNote, standingLine } from "../standing.js";
import { counted, t } from "../texts.js";

export async function storyView({ collection, ids, params, signal }) {
  const story = await get(path("collections", collection.name, "stories", ids[0]), signal);
  const most = Math.max(...story.nearest.map((each) => each.similarity), 0);
  const view = make("div", { class: "reading" },
    make("article", {},
      make("h1", {}, story.title || story.id),
      metadataLine(story.metadata),
      make("p", { class: "meta" }, counted("words", story.words)),
      make("p", { class: "actions" },
        linkButton(t("story.like"), address(collection.name, "search", [], { like: story.id })),
        listButton(collection, story, signal)),
      storyText(story.text, params)),
    make("aside", { "aria-labelledby": "nearest" },
      make("h2", { id: "nearest" }, t("story.nearest")),
      story.nearest.length === 0 ? make("p", {}, t("story.alone")) : null,
      make("ol", { class: "nearest" }, story.nearest.map((near) => nearest(collection, story, near, most)))));
  if (story.nearest.length) view.querySelector("ol").before(scaleNote(collection, view, signal));
  return view;
}

/** The text, with the passage that led here marked. */
function storyText(text, params) {
  const [start, end] = [Number(params.get("from")), Number(params.get("to"))];
  if (!(end > start)) return make("p", { class: "text" }, text);
  const mark = make("mark", {}, characters(text, start, end));
  setTimeout(() => mark.scrollIntoView({ block: "center" }));
  return make("p", { class: "text" }, characters(text, 0, start), mark, characters(text, end));
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
