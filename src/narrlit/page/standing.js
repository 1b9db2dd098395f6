// Words for similarities: the rank of a story, how alike it is, and what versions of one story in the collection look like.

import { getComputed, path } from "./api.js";
import { make, pause } from "./dom.js";
import { decimals, number, ordinal, t, term } from "./texts.js";

/** Scales of collections as promises; one that has failed is asked for again. */
const scales = new Map();
const ALIKE = { much: "alike.much", rather: "alike.rather", little: "alike.little", not: "alike.not" };

/** A word for a similarity; "" of too few stories. */
export const alikeText = (alike) => (alike === null ? "" : t(ALIKE[alike]));

/** The rank of a story as text: "nearest of 23". */
export function rankText({ rank, of }) {
  const values = { rank: ordinal(rank), of: number(of) };
  return rank === 1 ? t("standing.first", { of: number(of) }) : t("standing.rank", values);
}

/** A similarity in words, the first of them bold, then as a bar and a number; `most` is the similarity of a full bar. */
export function similarityLine([first, ...others], similarity, most) {
  const share = Math.max(0, Math.min(1, similarity / Math.max(most, 1e-9)));
  const bar = make("i", { styles: { "--share": share }, "aria-hidden": "true" });
  return make("p", { class: "similarity", "data-similarity": similarity, "data-most": most },
    first ? [make("b", {}, first), " · "] : null, others.map((word) => `${word} · `),
    make("span", { class: "measured" }, bar, " ", term("term.similarity"), ` ${decimals(similarity)}`));
}

/** The same for a story with a rank. */
export const standingLine = (standing, similarity, most) =>
  similarityLine([alikeText(standing.alike), rankText(standing)], similarity, most);

/**
 * What similarities mean in this collection, as a sentence that comes once it is computed.
 *
 * The bars in `root` get a mark where versions of one story begin.
 */
export function scaleNote(collection, root, signal) {
  const note = make("p", { class: "meta scale-note" });
  scaleOf(collection, signal).then((scale) => {
    const { chance, typical, threshold } = scale;
    const values = { threshold: decimals(threshold), pairs: number(chance.pairs), median: decimals(chance.median) };
    note.append(t("standing.scale", values));
    if (typical !== null) note.append(" ", t("standing.typical", { typical: decimals(typical) }));
    markBars(root, threshold);
  }, () => null);  // without it, the view is complete all the same
  return note;
}

function scaleOf(collection, signal) {
  const key = `${collection.name}:${collection.stories}`;
  if (!scales.has(key)) {
    const scale = getComputed(`${path("collections", collection.name)}/retellings`, signal, pause);
    scale.catch(() => scales.delete(key));
    scales.set(key, scale);
  }
  return scales.get(key);
}

/** Mark a threshold in all bars, and say which similarities are above it; words of others stand back. */
export function markBars(root, threshold) {
  for (const line of root.querySelectorAll("[data-similarity]")) {
    const { similarity, most } = line.dataset;
    const full = Math.max(Number(most), threshold * 1.05, 1e-9);
    const bar = line.querySelector("i");
    bar.style.setProperty("--share", Math.max(0, Math.min(1, similarity / full)));
    bar.style.setProperty("--mark", threshold / full);
    bar.classList.add("marked");
    const isAbove = similarity > threshold;
    line.classList.toggle("unsure", !isAbove);
    line.append(make("span", { class: isAbove ? "above" : "" }, ` · ${t(isAbove ? "standing.above" : "standing.below")}`));
  }
}
