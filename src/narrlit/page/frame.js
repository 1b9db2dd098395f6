// The frame of the page: it draws the view that the address names.

import { address, parseAddress } from "./address.js";
import { ApiError, get, path } from "./api.js";
import { make } from "./dom.js";
import { enterPlace, keepPlace, restorePlace } from "./places.js";
import { emptyState, errorBox, linkButton, progressBar, select } from "./parts.js";
import { labelColumn } from "./labels.js";
import { chooseSetting, loadProject, whenFailed } from "./project.js";
import { chosenStories, currentTitle, whenChosen } from "./selection.js";
import { language, LANGUAGES, t } from "./texts.js";

/** Milliseconds after which a view that is not there yet gives way to a bar. */
const SLOW = 800;
const find = (id) => document.getElementById(id);
/** What the page consists of: settings, views by name, links to them, and the overview of collections, if it has one. */
let page;
let leave = new AbortController();
let drawn = "";
/** The collection as the view shows it, in JSON. */
let shown = "";

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
  const context = { ...route, settings: page.settings, signal };
  if (route.collection === null && page.overview) return page.overview(context);
  const collection = await get(path("collections", route.collection), signal);
  shown = JSON.stringify(collection);
  const view = page.views[route.view];
  if (!view) throw new ApiError(404, t("error.view", { view: route.view }));
  whenChosen(() => drawLinks(route), signal);
  await loadProject(collection, signal);
  whenFailed((error) => find("main").prepend(errorBox(error, show)), signal);
  find("label-choice").replaceChildren(collection.columns.length ? labelChoice(collection, show) : "");
  return view({ ...context, collection });
}

/** Draw the view anew if another tab or an import has changed its collection; what somebody is writing is left alone. */
async function refresh() {
  const { collection: name } = parseAddress(location.hash);
  if (document.visibilityState !== "visible" || name === null || find("main").querySelector("form.edit, form.note-form")) return;
  const collection = await get(path("collections", name), leave.signal);
  if (JSON.stringify(collection) === shown) await loadProject(collection, leave.signal);
  else await show();
}

function missing(error) {
  const heading = t("error.missing");
  const link = linkButton(t(page.overview ? "nav.collections" : "nav.start"), page.first ?? "#/");
  return make("div", {}, make("h1", {}, heading), emptyState(error.message, "", link));
}

function drawLinks({ collection, view }) {
  const links = page.overview ? [navigationLink("#/", t("nav.collections"), collection === null)] : [];
  if (collection !== null) {
    if (page.overview) links.push(make("span", { class: "collection" }, collection));
    for (const [name, key] of page.links) {
      const isList = name === "list";
      const text = isList ? `${currentTitle(collection)} (${chosenStories(collection).length})` : t(key);
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

/** The list from which a reader chooses the column of second labels. */
function labelChoice(collection, redraw) {
  const options = collection.columns.map((column) => [column.name, t("preferences.with_label", { column: column.name })]);
  const choose = (column) => {
    chooseSetting(collection.name, "label", column);
    redraw();
  };
  return select([["", t("preferences.no_label")], ...options], labelColumn(collection), choose,
    { "aria-label": t("preferences.label"), id: "label" });
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

/** What to show where the page cannot start. */
export function failed(error) {
  prepare();
  find("main").replaceChildren(errorBox(error));
}

function prepare() {
  applyTheme();
  find("nav").setAttribute("aria-label", t("nav.label"));
  find("skip").textContent = t("nav.skip");
  find("skip").addEventListener("click", skipToMain);
  drawPreferences();
}

/** Draw the page; `first` is the address of the view that it opens with, and `footer` what stands below. */
export async function startPage(parts) {
  page = parts;
  prepare();
  find("footer").textContent = page.footer ?? t("footer.text", { version: page.settings.version, model: page.settings.model });
  if (page.first && location.hash.length < 3) history.replaceState(history.state, "", page.first);
  addEventListener("hashchange", show);
  document.addEventListener("visibilitychange", () => refresh().catch(() => null));  // whatever fails, a reader's next step tells
  keepPlace(find("main"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  await show();
}
