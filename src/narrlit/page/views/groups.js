// Groups of retellings: stories that are each other's nearest, above a threshold that can be moved.

import { address, keepInAddress } from "../address.js";
import { getComputed, path } from "../api.js";
import { carried } from "../carried.js";
import { confoundNote } from "../confounds.js";
import { announce, make, pause } from "../dom.js";
import { button, emptyState, errorBox, field, linkButton, progressBar, storyLink } from "../parts.js";
import { addStories } from "../selection.js";
import { counted, decimals, number, t } from "../texts.js";

export async function groupsView({ collection, params, signal }) {
  const view = make("div", {}, make("h1", {}, t("groups.title")), make("p", {}, t("groups.about")));
  if (collection.stories < 2) {
    view.append(emptyState(t("story.alone"), t("map.few_text"), linkButton(t("nav.collections"), "#/")));
    return view;
  }
  const place = make("div", {});
  let drawing = new AbortController();
  const draw = async (threshold) => {
    drawing.abort();
    drawing = new AbortController();
    const both = AbortSignal.any([signal, drawing.signal]);
    place.replaceChildren(make("p", {}, t("groups.computing")), progressBar(null, t("groups.computing")));
    const query = threshold === null ? "" : `?threshold=${encodeURIComponent(threshold)}`;
    try {
      const answer = await getComputed(`${path("collections", collection.name)}/retellings${query}`, both, pause);
      place.replaceChildren(...parts(collection, answer, (chosen) => {
        keepInAddress({ threshold: chosen });
        draw(chosen);
      }));
      announce(counted("groups.count", answer.groups.length, grouped(answer)));
    } catch (error) {
      if (!both.aborted) place.replaceChildren(errorBox(error));
    }
  };
  draw(params.get("threshold"));
  view.append(confoundNote(collection, signal), place);
  return view;
}

const grouped = ({ groups, stories }) =>
  ({ grouped: number(groups.reduce((sum, group) => sum + group.stories.length, 0)), all: number(stories) });

function parts(collection, answer, choose) {
  const { threshold, chosen, chance, groups } = answer;
  const input = make("input", { id: "threshold", type: "number", step: "any", min: -1, max: 1, value: Math.round(threshold * 1000) / 1000 });
  const form = make("form", { class: "tools" }, field(t("groups.threshold"), input),
    make("button", { type: "submit" }, t("groups.apply")),
    chosen ? null : button(t("groups.automatic"), () => choose(null), { class: "quiet", id: "automatic" }));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    choose(input.value);
  });
  const values = { threshold: decimals(threshold), pairs: number(chance.pairs), median: decimals(chance.median) };
  const cards = groups.map((group) => make("li", {},
    make("h3", {}, t("groups.group", { number: number(group.number) })),
    make("ol", {}, group.stories.map((story) => make("li", {}, storyLink(collection, story)))),
    make("p", { class: "actions" },
      linkButton(t("action.compare"), address(collection.name, "compare", group.stories.slice(0, 2).map((story) => story.id)),
        { "aria-label": `${t("action.compare")}: ${t("groups.group", { number: number(group.number) })}` }),
      button(counted("map.choose", group.stories.length), () => addStories(collection.name, group.stories)))));
  return [
    make("p", { class: "finding" }, counted("groups.count", groups.length, grouped(answer))),
    make("p", {}, chosen ? t("groups.chosen", values) : t("groups.asked", values)),
    ...(carried ? [] : [form]),
    groups.length ? make("ol", { class: "cards groups" }, cards) : emptyState(t("groups.none"), t("groups.none_text"))];
}
