// Warnings where the nearest stories share their length, language or translator more often than by chance.

import { address } from "./address.js";
import { getComputed, path } from "./api.js";
import { make, pause } from "./dom.js";
import { percent, t } from "./texts.js";

const KINDS = { length: "confounds.length", language: "confounds.language" };

/** What a property is called: a column by its name. */
export const confoundName = ({ kind, name }) => (kind in KINDS ? t(KINDS[kind]) : name);

/** Get what nearest neighbors share. */
export const confoundsOf = (collection, signal) =>
  getComputed(`${path("collections", collection.name)}/confounds`, signal, pause).then((answer) => answer.confounds);

/** A warning that comes once it is computed, if there is one. */
export function confoundNote(collection, signal) {
  const note = make("div", { class: "confounds" });
  confoundsOf(collection, signal).then((confounds) => {
    for (const each of confounds.filter((confound) => confound.is_warning)) {
      const values = { name: confoundName(each), share: percent(each.share), chance: percent(each.chance) };
      note.append(make("p", { class: "warning" }, t("confounds.warning", values), " ",
        make("a", { href: address(collection.name, "agreement") }, t("confounds.more"))));
    }
  }, () => null);  // without it, the view is complete all the same
  return note;
}
