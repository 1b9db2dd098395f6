// The list of chosen stories with exports, beside the map and as a view of its own.

import { address } from "./address.js";
import { download, path } from "./api.js";
import { carried } from "./carried.js";
import { announce, make } from "./dom.js";
import { titleOf } from "./labels.js";
import { attempt, button, field, linkButton, select, storyLink } from "./parts.js";
import {
  chosenStories, currentList, currentTitle, listNames, listTitle, removeStories, toggle, useList, whenChosen,
} from "./selection.js";
import { counted, t } from "./texts.js";

const FORMATS = [
  ["csv", "export.csv"],
  ["xlsx", "export.xlsx"],
  ["graphml", "export.graphml"],
  ["palladio", "export.palladio"],
  ["svg", "export.svg"],
  ["bibtex", "export.bibtex"],
  ["ris", "export.ris"],
  ["csl", "export.csl"],
  ["txt", "export.txt"],
];

/** Stories of the list that are written out. */
const SHOWN = 200;

/** The list as a panel that follows every change of it; `choice`: with a field for another list. */
export function selectionPanel(collection, signal, choice = true) {
  const panel = make("section", { class: "panel", "aria-label": t("work.lists") });
  const update = () => panel.replaceChildren(...drawn(collection, choice).filter(Boolean));
  whenChosen(update, signal);
  update();
  return panel;
}

function drawn(collection, choice) {
  const { name } = collection;
  const stories = chosenStories(name);
  const heading = make("h2", {}, counted("list.count", stories.length, { list: currentTitle(name) }));
  const names = listNames(name).map((each) => [each, listTitle(each)]);
  const lists = choice && names.length > 1
    ? field(t("work.list"), select(names, currentList(name), (list) => useList(name, list), { id: "panel-list" })) : null;
  if (stories.length === 0) return [lists, heading, make("p", {}, t("list.how"))];
  const items = stories.slice(0, SHOWN).map((story) => make("li", {}, storyLink(collection, story),
    button("×", () => toggle(name, story), { class: "quiet", "aria-label": t("list.remove", { title: titleOf(collection, story) }) })));
  const [first, second, third] = stories;
  return [lists, heading, make("ol", { class: "chosen" }, items),
    stories.length > SHOWN ? make("p", {}, counted("list.more", stories.length - SHOWN)) : null,
    make("p", { class: "actions" },
      second ? linkButton(t("list.compare"), address(name, "compare", [first.id, second.id])) : null,
      third ? linkButton(t("list.compare_three"), address(name, "compare", [first.id, second.id, third.id])) : null,
      button(t("list.clear"), () => removeStories(name, chosenStories(name)), { class: "quiet" })),
    carried ? null : exports(collection, stories)];
}

function exports(collection, stories) {
  const place = make("div", {}, make("h3", {}, t("export.title")));
  const buttons = FORMATS.map(([format, key]) => button(t(key), () => attempt(place, async () => {
    const body = { ids: stories.map((story) => story.id), format, name: currentList(collection.name) };
    const file = await download("POST", `${path("collections", collection.name)}/export`, body);
    announce(t("export.saved", { file }));
  }), { "data-format": format }));
  place.append(make("p", { class: "actions" }, buttons));
  return place;
}
