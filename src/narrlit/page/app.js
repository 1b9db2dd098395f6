// The page of a server: its views, and the first requests.

import { get } from "./api.js";
import { failed, startPage } from "./frame.js";
import { useTexts } from "./texts.js";
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

async function start() {
  useTexts(await (await fetch("page/texts.json")).json());
  try {
    startPage({ settings: await get("settings"), views: VIEWS, links: LINKS, overview });
  } catch (error) {
    failed(error);
  }
}

/** What is shown of no collection: all collections, or an import. */
function overview(context) {
  return context.params.has("import") ? importView(context) : collectionsView(context);
}

start();
