// A story that was chosen in a picture: its beginning, and its nearest stories.

import { address } from "./address.js";
import { get, path } from "./api.js";
import { make } from "./dom.js";
import { titleOf } from "./labels.js";
import { button, listButton, metadataLine, storyLink } from "./parts.js";
import { standingLine } from "./standing.js";
import { t } from "./texts.js";

/** Characters of the text that are shown. */
const BEGINNING = 600;

/** Write a story and its nearest ones to `place`; `focus` is called with another one that is chosen. Returns the story. */
export async function nearestPanel(collection, point, place, focus, signal) {
  const story = await get(path("collections", collection.name, "stories", point.id), signal);
  const most = Math.max(...story.nearest.map((near) => near.similarity), 0);
  const isCut = story.text.length > BEGINNING;
  place.replaceChildren(
    make("article", {},
      make("h2", {}, storyLink(collection, { ...story, title: point.title })), metadataLine(story.metadata),
      make("p", { class: "actions" }, listButton(collection, { ...story, title: point.title }, signal)),
      make("p", { class: "text" }, isCut ? `${story.text.slice(0, BEGINNING)}…` : story.text)),
    make("div", {}, make("h3", {}, t("map.nearest", { title: titleOf(collection, point) })),
      make("ol", { class: "nearest" }, story.nearest.map((near) => make("li", {},
        button(titleOf(collection, near), () => focus(near), { class: "quiet" }),
        standingLine(near.standing, near.similarity, most),
        make("a", { href: address(collection.name, "compare", [story.id, near.id]),
          "aria-label": t("story.compare_with", { title: titleOf(collection, near) }) }, t("action.compare")))))));
  return story;
}
