// The stories on the list, and what can be done with them.

import { address } from "../address.js";
import { make } from "../dom.js";
import { emptyState, linkButton } from "../parts.js";
import { selectionPanel } from "../selection_panel.js";
import { chosenStories } from "../selection.js";
import { t } from "../texts.js";

export async function listView({ collection, signal }) {
  const { name } = collection;
  if (chosenStories(name).length === 0) {
    return make("div", {}, make("h1", {}, t("list.title")),
      emptyState(t("list.none"), t("list.none_text"),
        linkButton(t("nav.search"), address(name, "search")), linkButton(t("nav.map"), address(name, "map"))));
  }
  return make("div", {}, make("h1", {}, t("list.title")), selectionPanel(collection, signal));
}
