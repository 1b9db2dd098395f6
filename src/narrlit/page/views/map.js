// The collection as a picture: a plane, or a tree with the similarity of each pair; colored by any column.

import { keepInAddress } from "../address.js";
import { getComputed, path, post } from "../api.js";
import { carried } from "../carried.js";
import { colorsOf } from "../colors.js";
import { announce, make, pause } from "../dom.js";
import { Plane } from "../map_plane.js";
import { Tree } from "../map_tree.js";
import { nearestPanel } from "../nearest_panel.js";
import { attempt, button, emptyState, errorBox, field, linkButton, progressBar, select, storyLink } from "../parts.js";
import { chooseSetting, settingOf } from "../project.js";
import { savePng, saveSvg } from "../saving.js";
import { addStories, currentTitle, isChosen, toggle, whenChosen } from "../selection.js";
import { selectionPanel } from "../selection_panel.js";
import { counted, language, t, term } from "../texts.js";
import { shareText } from "./agreement.js";

/** The value of the list of columns that stands for the groups that were found. */
const GROUPS = "";
/** Milliseconds after the last key before words are looked for, and after the last move before it is kept. */
const PAUSE = 250;
/** Stories with the words that are listed. */
const LISTED = 8;

export async function mapView({ collection, params, signal }) {
  if (collection.stories < 3) {
    return make("div", {}, make("h1", {}, t("nav.map")),
      emptyState(t("map.few"), t("map.few_text"), linkButton(t("nav.collections"), "#/")));
  }
  const view = make("div", { class: "map" }, make("h1", {}, t("map.title", { name: collection.name })));
  const state = make("div", {}, make("p", {}, t("map.computing")), progressBar(null, t("map.computing")));
  view.append(state);
  draw(view, state, collection, params, signal);
  return view;
}

async function draw(view, state, collection, params, signal) {
  try {
    const map = await getComputed(`${path("collections", collection.name)}/map`, signal, pause);
    state.remove();
    view.append(...mapParts(map, collection, params, signal));
  } catch (error) {
    if (signal.aborted) return;
    state.replaceChildren(errorBox(error));
  }
}

function mapParts(map, collection, params, signal) {
  const { name } = collection;
  const { points } = map;
  const hasPlane = points.every((point) => Number.isFinite(point.x) && Number.isFinite(point.y));
  const pictures = [];
  if (map.tree && map.similarities) pictures.push(["tree", t("map.tree"), Tree]);
  if (hasPlane) pictures.push(["plane", t("map.plane"), Plane]);
  const columns = [[GROUPS, t("map.groups")], ...columnsOf(points, collection).map((column) => [column, column])];
  const shown = { picture: params.get("picture") ?? pictures[0][0], color: params.get("color") ?? settingOf(name, "color") ?? map.color ?? GROUPS, at: params.get("at") };
  if (!pictures.some(([kind]) => kind === shown.picture)) shown.picture = pictures[0][0];
  if (!columns.some(([column]) => column === shown.color)) shown.color = GROUPS;

  const figure = make("figure", {});
  const key = make("ul", { class: "key" });
  const near = make("section", { class: "near-stories" });
  let [picture, scale, values, found, focused, moving] = [null, null, [], null, null, null];
  const hidden = new Set();
  const actions = {
    collection,
    signal,
    isChosen: (point) => isChosen(name, point.id),
    show: (point) => focus(point),
    keptView: () => shown.at,
    keepView: (view) => {
      if (view === shown.at) return;
      shown.at = view;
      clearTimeout(moving);
      moving = setTimeout(() => signal.aborted || keepInAddress({ at: view }), PAUSE);
    },
    add: (stories) => addStories(name, stories),
  };
  const fade = () => picture.fade(points.map((point, place) => hidden.has(values[place]) || (found !== null && !found.has(point.id))));
  const focus = async ({ id: chosen }) => {
    const point = points.find(({ id }) => id === chosen);
    focused = point;
    const story = await attempt(near, () => nearestPanel(collection, point, near, focus, signal));
    if (story && focused === point) picture.focus(point, story.nearest.map(({ id }) => points.find((each) => each.id === id)).filter(Boolean));
  };
  const recolor = () => {
    values = points.map((point) => valueOf(point, map, shown.color));
    scale = colorsOf(values, t(shown.color === GROUPS ? "map.no_group" : "map.missing"));
    hidden.clear();
    key.replaceChildren(...scale.key.map((each) => keyEntry(each, points, values, hidden, fade, actions)));
    picture.recolor(scale.colors, shown.color === GROUPS ? null : values);
    fade();
  };
  const redraw = () => {
    const [, , Picture] = pictures.find(([kind]) => kind === shown.picture);
    picture = new Picture(map, actions);
    figure.replaceChildren(picture.element);
    recolor();
    if (focused) focus(focused);
    figure.append(make("figcaption", { class: "meta" }, t(shown.picture === "tree" ? "map.about_tree" : "map.about_plane")));
  };
  const set = (option, redo) => (value) => {
    shown[option] = value;
    if (option === "color") chooseSetting(name, "color", value);
    keepInAddress({ [option]: value });
    redo();
  };
  const finder = finding(map, collection, signal, focus, (ids) => {
    found = ids;
    fade();
  });
  const save = (how) => attempt(tools, () => how(picture.svg(scale.key), t("map.file", { name })));
  whenChosen(() => picture.mark(), signal);
  const tools = make("div", { class: "tools" },
    pictures.length > 1 ? field(t("map.picture"), select(pictures.map(([kind, text]) => [kind, text]), shown.picture, set("picture", redraw), { id: "picture" })) : null,
    field(t("map.color"), select(columns, shown.color, set("color", recolor), { id: "color" })), finder.field,
    make("p", { class: "actions" }, button(t("map.save_svg"), () => save(saveSvg), { id: "save-svg" }), button(t("map.save_png"), () => save(savePng), { id: "save-png" })));
  setTimeout(redraw);  // colors and sizes of the style sheet hold once the parts are in the page
  return [
    make("p", { class: "finding" }, counted("stories", points.length), ", ", term("term.group", counted("map.group_count", map.groups.length))),
    agreementLines(), factsOf(map), tools, finder.matches, key, make("div", { class: "beside" }, figure, selectionPanel(collection, signal)), near, storyTable(map, actions)];
}

/** How nearest stories agree with the column that a file was made with. */
function agreementLines() {
  const agreements = Object.values(carried?.answers.agreement ?? {});
  return make("div", {}, agreements.map(({ column, partners, shares }) => make("p", { class: "finding" }, shareText(column, partners, shares[0]))));
}

/** What the map was made from: model, measure, words read, languages, accuracy. */
function factsOf({ facts }) {
  const lines = Object.entries(facts).filter(([name]) => name in FACTS).map(([name, text]) =>
    make("div", {}, make("dt", {}, t(FACTS[name])), make("dd", {}, text)));
  return make("details", { class: "facts" }, make("summary", {}, t("fact.title")), make("dl", {}, lines));
}

const FACTS = { model: "fact.model", measure: "fact.measure", read: "fact.read", languages: "fact.languages", accuracy: "fact.accuracy", hubs: "fact.hubs", method: "fact.method" };

/** A field for words: `show` gets the ids of stories with them in title, columns or text, or null. */
function finding({ points }, collection, signal, focus, show) {
  const input = make("input", { type: "search", id: "find", placeholder: t("map.find_hint") });
  const matches = make("p", { class: "matches", "aria-live": "polite" });
  const plain = (text) => text.toLocaleLowerCase(language);
  const lines = points.map(({ id, title, metadata, beginning }) => plain([id, title, ...Object.values(metadata), beginning].join(" ")));
  let timer;
  const find = async () => {
    const phrase = input.value.trim();
    if (phrase === "") {
      matches.replaceChildren();
      return show(null);
    }
    const words = plain(phrase).split(/\s+/);
    const ids = new Set(points.filter((_, place) => words.every((word) => lines[place].includes(word))).map((point) => point.id));
    const inText = await post(`${path("collections", collection.name)}/concordance`, { phrase }, signal).catch(() => ({ lines: [] }));
    if (input.value.trim() !== phrase) return undefined;
    for (const { id } of inText.lines) ids.add(id);
    const stories = points.filter((point) => ids.has(point.id));
    matches.replaceChildren(counted("map.found", ids.size), ...stories.slice(0, LISTED).map((point) =>
      button(point.title, () => focus(point), { class: "quiet" })));
    return show(ids);
  };
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(find, PAUSE);
  });
  return { field: field(t("map.find"), input), matches };
}

/** Columns that color: more than one value, and not a different one for every story. */
function columnsOf(points, collection) {
  return collection.columns.map((column) => column.name).filter((column) => {
    const values = points.map((point) => point.metadata[column]).filter((value) => value !== null && value !== "");
    const distinct = new Set(values).size;
    const isNumber = values.every((value) => isFinite(value));
    return distinct > 1 && (isNumber || distinct < values.length);
  });
}

function valueOf(point, map, column) {
  if (column !== GROUPS) return point.metadata[column] ?? "";
  return map.groups.find((group) => group.number === point.group)?.label ?? "";
}

/** A color and its value: a click hides its stories or shows them again, the sign beside puts them on the list. */
function keyEntry({ color, name, has }, points, values, hidden, fade, actions) {
  const mine = [...new Set(values.filter(has))];
  const stories = points.filter((_, place) => has(values[place]));
  const box = make("i", { styles: { background: color } });
  const control = button([box, name], () => {
    const isShown = control.getAttribute("aria-pressed") === "true";
    for (const value of mine) hidden[isShown ? "add" : "delete"](value);
    control.setAttribute("aria-pressed", !isShown);
    fade();
  }, { "aria-pressed": "true", title: t("map.hide") });
  const text = counted("map.choose", stories.length, { list: currentTitle(actions.collection.name) });
  return make("li", {}, control, button("+", () => {
    actions.add(stories);
    announce(text);
  }, { class: "quiet", title: text, "aria-label": `${text}: ${name}` }));
}

/** All stories by group, for those who don't use the picture. */
function storyTable(map, actions) {
  const members = (group) => map.points.filter((point) => point.group === group.number);
  const numbers = map.groups.map((group) => group.number);
  const others = map.points.filter((point) => !numbers.includes(point.group));
  const central = ({ central: id }) => map.points.find((point) => point.id === id);
  const groups = [...map.groups.map((group) => [group.label, members(group), central(group)]), [t("map.no_group"), others]];
  return make("details", { class: "all" }, make("summary", {}, t("map.as_list")),
    groups.filter(([, stories]) => stories.length > 0).map(([label, stories, middle]) => groupList(label, stories, middle, actions)));
}

/** The stories of a group with boxes to put them on the list, written when the group is opened. */
function groupList(label, stories, central, { collection, signal }) {
  const list = make("ul", { class: "columns" });
  const group = make("details", {}, make("summary", {}, `${label} (${counted("stories", stories.length)})`),
    central ? make("p", { class: "meta" }, t("map.central"), " ", storyLink(collection, central)) : null, list);
  group.addEventListener("toggle", () => {
    const boxes = stories.map((point) => {
      const box = make("input", { type: "checkbox", checked: isChosen(collection.name, point.id) });
      box.addEventListener("change", () => toggle(collection.name, point));
      return box;
    });
    list.append(...stories.map((point, place) => make("li", {},
      make("label", { class: "check" }, boxes[place], point.title || point.id), " ",
      make("span", { class: "meta" }, storyLink(collection, { id: point.id, title: t("action.read") })))));
    whenChosen(() => boxes.forEach((box, place) => (box.checked = isChosen(collection.name, stories[place].id))), signal);
  }, { once: true });
  return group;
}
