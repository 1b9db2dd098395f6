// The frame of the page: it draws the view that the address names.

import { address, parseAddress } from "./address.js";
import { ApiError, get, path } from "./api.js";
import { make } from "./dom.js";
import { enterPlace, keepPlace, restorePlace } from "./places.js";
import { emptyState, errorBox, linkButton, progressBar, select } from "./parts.js";
import { labelChoice } from "./labels.js";
import { loadProject, whenFailed } from "./project.js";
import { chosenStories, currentList, listTitle, whenChosen } from "./selection.js";
import { language, LANGUAGES, loadTexts, t } from "./texts.js";
import { agreementView } from "./views/agreement.js";
import { catalogView } from "./views/catalog.js";
import { collectionsView } from "./views/collections.js";
import { compareView } from "./views/compare.js";
import { groupsView } from "./views/groups.js";
import { importView } from "./views/import.js";
import { listView } from "./views/list.js";
import { mapView } from "./views/map.js";
import { pairsView } from "./views/pairs.js";
import { searchView } from "./views/search.js";
import { storyView } from "./views/story.js";

const VIEWS = {
  search: searchView,
  story: storyView,
  compare: compareView,
  map: mapView,
  groups: groupsView,
  agreement: agreementView,
  pairs: pairsView,
  catalog: catalogView,
  list: listView,
};
const LINKS = [
  ["search", "nav.search"],
  ["map", "nav.map"],
  ["groups", "nav.groups"],
  ["agreement", "nav.agreement"],
  ["pairs", "nav.pairs"],
  ["catalog", "nav.catalog"],
  ["list", "nav.list"],
];
/** Milliseconds after which a view that is not there yet gives way to a bar. */
const SLOW = 800;
const find = (id) => document.getElementById(id);
let settings;
let leave = new AbortController();
let drawn = "";

/** Draw the view that the address names; what the last one still awaits is given up. */
async function show() {
  leave.abort();
  leave = new AbortController();
  const { signal } = leave;
  const route = parseAddress(location.hash);
  find("label-choice").replaceChildren();
  const place = [route.collection, route.view, ...route.ids].join("/");
  const focused = place === drawn ? document.activeElement?.id : null;
  const main = find("main");
  const isBack = enterPlace();
  find("tip").hidden = true;
  main.setAttribute("aria-busy", "true");
  drawLinks(route);
  const slow = setTimeout(() => main.replaceChildren(progressBar(null, t("nav.loading"))), SLOW);
  let content;
  try {
    content = await viewOf(route, signal);
  } catch (error) {
    if (signal.aborted) return;
    content = error instanceof ApiError && error.status === 404 ? missing(error) : errorBox(error, show);
  } finally {
    clearTimeout(slow);
  }
  if (signal.aborted) return;
  main.replaceChildren(content);
  main.removeAttribute("aria-busy");
  const heading = main.querySelector("h1");
  document.title = heading ? `${heading.textContent} – narrlit` : "narrlit";
  (focused && find(focused) ? find(focused) : main).focus({ preventScroll: true });
  if (isBack) restorePlace(main, signal);
  else if (place !== drawn) scrollTo(0, 0);
  drawn = place;
}

async function viewOf(route, signal) {
  const context = { ...route, settings, signal };
  if (route.collection === null) {
    return route.params.has("import") ? importView(context) : collectionsView(context);
  }
  const collection = await get(path("collections", route.collection), signal);
  const view = VIEWS[route.view];
  if (!view) throw new ApiError(404, t("error.view", { view: route.view }));
  whenChosen(() => drawLinks(route), signal);
  await loadProject(collection, signal);
  whenFailed((error) => find("main").prepend(errorBox(error, show)), signal);
  find("label-choice").replaceChildren(collection.columns.length ? labelChoice(collection, show) : "");
  return view({ ...context, collection });
}

function missing(error) {
  const heading = t("error.missing");
  return make("div", {}, make("h1", {}, heading), emptyState(error.message, "", linkButton(t("nav.collections"), "#/")));
}

function drawLinks({ collection, view }) {
  const links = [navigationLink("#/", t("nav.collections"), collection === null)];
  if (collection !== null) {
    links.push(make("span", { class: "collection" }, collection));
    for (const [name, key] of LINKS) {
      const isList = name === "list";
      const text = isList ? `${listTitle(currentList(collection))} (${chosenStories(collection).length})` : t(key);
      links.push(navigationLink(address(collection, name), text, view === name));
    }
  }
  find("nav").replaceChildren(...links);
}

function navigationLink(href, text, current) {
  return make("a", { href, "aria-current": current ? "page" : null }, text);
}

/** Choice of language and colors, kept in the browser. */
function drawPreferences() {
  const languages = select(Object.entries(LANGUAGES), language, (chosen) => {
    localStorage.setItem("language", chosen);
    location.reload();
  }, { "aria-label": t("preferences.language"), id: "language" });
  const themes = [["auto", t("theme.auto")], ["light", t("theme.light")], ["dark", t("theme.dark")]];
  const theme = select(themes, localStorage.getItem("theme") ?? "auto", (chosen) => {
    localStorage.setItem("theme", chosen);
    applyTheme();
    show();
  }, { "aria-label": t("preferences.theme"), id: "theme" });
  find("preferences").replaceChildren(make("span", { id: "label-choice" }), theme, languages);
}

function applyTheme() {
  const theme = localStorage.getItem("theme") ?? "auto";
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

function skipToMain(event) {
  event.preventDefault();
  find("main").focus();
}

async function start() {
  applyTheme();
  await loadTexts();
  find("nav").setAttribute("aria-label", t("nav.label"));
  find("skip").textContent = t("nav.skip");
  find("skip").addEventListener("click", skipToMain);
  drawPreferences();
  try {
    settings = await get("settings");
  } catch (error) {
    find("main").replaceChildren(errorBox(error));
    return;
  }
  find("footer").textContent = t("footer.text", { version: settings.version, model: settings.model });
  addEventListener("hashchange", show);
  keepPlace(find("main"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  await show();
}

start();
