// The collection as a picture: a plane, or a tree with the similarity of each pair; colored by any column.

import { keepInAddress } from "../address.js";
import { getComputed, path } from "../api.js";
import { colorsOf } from "../colors.js";
import { make, pause } from "../dom.js";
import { planeOf } from "../map_plane.js";
import { treeOf } from "../map_tree.js";
import { button, emptyState, errorBox, field, linkButton, progressBar, select, storyLink } from "../parts.js";
import { chooseSetting, settingOf } from "../project.js";
import { addStories, isChosen, toggle, whenChosen } from "../selection.js";
import { selectionPanel } from "../selection_panel.js";
import { counted, t, term } from "../texts.js";

/** The value of the list of columns that stands for the groups that were found. */
const GROUPS = "";

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
  if (map.tree && map.similarities) pictures.push(["tree", t("map.tree"), treeOf]);
  if (hasPlane) pictures.push(["plane", t("map.plane"), planeOf]);
  const columns = [[GROUPS, t("map.groups")], ...columnsOf(points, collection).map((column) => [column, column])];
  const shown = { picture: params.get("picture") ?? pictures[0][0], color: params.get("color") ?? settingOf(name, "color") ?? GROUPS };
  if (!pictures.some(([kind]) => kind === shown.picture)) shown.picture = pictures[0][0];
  if (!columns.some(([column]) => column === shown.color)) shown.color = GROUPS;

  const actions = {
    collection,
    signal,
    isChosen: (point) => isChosen(name, point.id),
    toggle: (point) => toggle(name, point),
    add: (stories) => addStories(name, stories),
  };
  const figure = make("figure", {});
  const key = make("ul", { class: "key" });
  let picture;
  const recolor = () => {
    const values = points.map((point) => valueOf(point, map, shown.color));
    const scale = colorsOf(values);
    key.replaceChildren(...scale.key.map((each) => keyEntry(each, points, values, actions)));
    picture.recolor(scale.colors, shown.color === GROUPS ? null : values);
  };
  const redraw = () => {
    const [, , build] = pictures.find(([kind]) => kind === shown.picture);
    picture = build(map, actions);
    figure.replaceChildren(picture.element);
    recolor();
    figure.append(make("figcaption", { class: "meta" }, t(shown.picture === "tree" ? "map.about_tree" : "map.about_plane")));
  };
  const set = (option, redo) => (value) => {
    shown[option] = value;
    if (option === "color") chooseSetting(name, "color", value);
    keepInAddress({ [option]: value });
    redo();
  };
  whenChosen(() => picture.mark(), signal);
  const tools = make("div", { class: "tools" },
    pictures.length > 1 ? field(t("map.picture"), select(pictures.map(([kind, text]) => [kind, text]), shown.picture, set("picture", redraw), { id: "picture" })) : null,
    field(t("map.color"), select(columns, shown.color, set("color", recolor), { id: "color" })));
  setTimeout(redraw);  // colors and sizes of the style sheet hold once the parts are in the page
  return [
    make("p", { class: "finding" }, counted("stories", points.length), ", ", term("term.group", counted("map.group_count", map.groups.length))),
    tools, key, make("div", { class: "beside" }, figure, selectionPanel(collection, signal)), storyTable(map, actions)];
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

/** A color and its value; a click puts its stories on the list. */
function keyEntry({ color, name, has }, points, values, actions) {
  const stories = points.filter((_, place) => has(values[place]));
  const box = make("i", { styles: { background: color } });
  const control = button([box, name], () => actions.add(stories), { title: counted("map.choose", stories.length) });
  return make("li", {}, control);
}

/** All stories by group, for those who don't use the picture. */
function storyTable(map, actions) {
  const members = (group) => map.points.filter((point) => point.group === group.number);
  const numbers = map.groups.map((group) => group.number);
  const others = map.points.filter((point) => !numbers.includes(point.group));
  const groups = [...map.groups.map((group) => [group.label, members(group)]), [t("map.no_group"), others]];
  return make("details", { class: "all" }, make("summary", {}, t("map.as_list")),
    groups.filter(([, stories]) => stories.length > 0).map(([label, stories]) => groupList(label, stories, actions)));
}

/** The stories of a group with boxes to put them on the list, written when the group is opened. */
function groupList(label, stories, { collection, signal, isChosen, toggle }) {
  const list = make("ul", { class: "columns" });
  const group = make("details", {}, make("summary", {}, `${label} (${counted("stories", stories.length)})`), list);
  group.addEventListener("toggle", () => {
    const boxes = stories.map((point) => {
      const box = make("input", { type: "checkbox", checked: isChosen(point) });
      box.addEventListener("change", () => toggle(point));
      return box;
    });
    list.append(...stories.map((point, place) => make("li", {},
      make("label", { class: "check" }, boxes[place], point.title || point.id), " ",
      make("span", { class: "meta" }, storyLink(collection, { id: point.id, title: t("action.read") })))));
    whenChosen(() => boxes.forEach((box, place) => (box.checked = isChosen(stories[place]))), signal);
  }, { once: true });
  return group;
}
