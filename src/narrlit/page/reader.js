// Who decides about pairs, and what can be decided.

import { t } from "./texts.js";

/** Decisions about a pair, with their words. */
export const DECISION_TEXTS = { same: "pairs.same", different: "pairs.different", unsure: "pairs.unsure" };

/** The name of the reader, as it was written last. */
export const readerName = () => localStorage.getItem("reader") ?? t("pairs.first_reader");

/** Keep the name for other views. */
export const keepReader = (name) => localStorage.setItem("reader", name);
