// Groups of retellings: stories that are near each other, above a threshold that can be moved.

import { address, keepInAddress } from "../address.js";
import { getComputed, path } from "../api.js";
import { carried } from "../carried.js";
import { confoundNote } from "../confounds.js";
import { announce, make, pause } from "../dom.js";
import { button, emptyState, errorBox, field, linkButton, progressBar, select, storyLink } from "../parts.js";
import { addStories, currentTitle } from "../selection.js";
import { counted, decimals, number, percent, t } from "../texts.js";

/** The value of the list of columns that stands for none. */
const NONE = "";

export async function groupsView({ collection, params, signal }) {
  const view = make("div", {}, make("h1", {}, t("groups.title")), make("p", {}, t("groups.about")));
  if (collection.stories < 2) {
    view.append(emptyState(t("story.alone"), t("map.few_text"), linkButton(t("nav.collections"), "#/")));
    return view;
  }
  const place = make("div", {});
  const columns = groupingColumns(collection);
  let column = columns.includes(params.get("column")) ? params.get("column") : NONE;
  let [drawing, answer] = [new AbortController(), null];
  const show = () => place.replaceChildren(...parts(collection, answer, column));
  const draw = async (threshold) => {
    drawing.abort();
    drawing = new AbortController();
    const both = AbortSignal.any([signal, drawing.signal]);
    place.replaceChildren(make("p", {}, t("groups.computing")), progressBar(null, t("groups.computing")));
    const query = threshold === null ? "" : `?threshold=${encodeURIComponent(threshold)}`;
    try {
      answer = await getComputed(`${path("collections", collection.name)}/retellings${query}`, both, pause);
      form.write(answer);
      show();
      announce(counted("groups.count", answer.groups.length, grouped(answer)));
    } catch (error) {
      if (!both.aborted) place.replaceChildren(errorBox(error));
    }
  };
  const form = thresholdForm((threshold) => {
    keepInAddress({ threshold });
    draw(threshold);
  });
  const choice = select([[NONE, t("groups.no_column")], ...columns.map((each) => [each, each])], column, (chosen) => {
    column = chosen;
    keepInAddress({ column });
    if (answer) show();
  }, { id: "column" });
  if (columns.length) form.element.append(field(t("groups.column"), choice));
  draw(params.get("threshold"));
  view.append(confoundNote(collection, signal), carried ? "" : form.element, place);
  return view;
}

/** Columns that group stories, and whose values are all known with their counts. */
const groupingColumns = ({ columns }) =>
  columns.filter(({ distinct, values }) => distinct > 1 && values.length === distinct && values[0].count > 1).map(({ name }) => name);

const grouped = ({ groups, stories }) =>
  ({ grouped: number(groups.reduce((sum, group) => sum + group.stories.length, 0)), all: number(stories) });

/** A form for the threshold: `choose` gets a number as text, or null for the one of the collection. */
function thresholdForm(choose) {
  const input = make("input", { id: "threshold", inputmode: "decimal", size: 8, autocomplete: "off" });
  const automatic = button(t("groups.automatic"), () => choose(null), { class: "quiet", id: "automatic", hidden: true });
  const element = make("form", { class: "tools" }, field(t("groups.threshold"), input), make("button", { type: "submit" }, t("groups.apply")), automatic);
  input.addEventListener("input", () => input.setCustomValidity(""));
  element.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = input.value.trim().replace(",", ".").replace("−", "-");
    if (text !== "" && Number.isFinite(Number(text))) return choose(text);
    input.setCustomValidity(t("groups.not_a_number", { example: decimals(0.1, 1) }));
    return input.reportValidity();
  });
  const write = ({ threshold, chosen }) => {
    input.value = decimals(threshold);
    automatic.hidden = chosen;
  };
  return { element, write };
}

function parts(collection, answer, column) {
  const { threshold, chosen, chance, groups } = answer;
  const values = { threshold: decimals(threshold), pairs: number(chance.pairs), median: decimals(chance.median) };
  const cards = groups.map((group) => make("li", {},
    make("h3", {}, t("groups.group", { number: number(group.number) })),
    make("ol", {}, group.stories.map((story) => make("li", {}, storyLink(collection, story)))),
    make("p", { class: "actions" },
      linkButton(t("action.compare"), address(collection.name, "compare", group.stories.slice(0, 2).map((story) => story.id)),
        { "aria-label": `${t("action.compare")}: ${t("groups.group", { number: number(group.number) })}` }),
      button(counted("map.choose", group.stories.length, { list: currentTitle(collection.name) }), () => addStories(collection.name, group.stories)))));
  return [
    make("p", { class: "finding" }, counted("groups.count", groups.length, grouped(answer))),
    make("p", {}, chosen ? t("groups.chosen", values) : t("groups.asked", values)),
    column === NONE ? "" : make("p", { class: "agreement" }, agreementText(collection, groups, column)),
    groups.length ? make("ol", { class: "cards groups" }, cards) : emptyState(t("groups.none"), t("groups.none_text"))];
}

/** How many pairs of stories in one group have the same value, and how many pairs with the same value are in one group. */
function agreementText(collection, groups, column) {
  const pairs = (n) => (n * (n - 1)) / 2;
  const sum = (counts) => counts.reduce((total, count) => total + pairs(count), 0);
  let [within, same] = [0, 0];
  for (const { stories } of groups) {
    const counts = new Map();
    for (const { metadata } of stories) {
      const value = metadata[column] ?? "";
      if (value !== "") counts.set(value, (counts.get(value) ?? 0) + 1);
    }
    within += pairs([...counts.values()].reduce((total, count) => total + count, 0));
    same += sum([...counts.values()]);
  }
  const all = sum(collection.columns.find(({ name }) => name === column).values.map(({ count }) => count));
  return t("groups.agreement", { column, within: number(within), same: number(same), all: number(all),
    right: percent(within ? same / within : 0), found: percent(all ? same / all : 0) });
}
