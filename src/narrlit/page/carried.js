// Answers that a page from a file carries with it, where no server answers.

import { characters } from "./dom.js";

const place = document.getElementById("carried");
/** What the page carries; null: a server answers. */
export const carried = place === null ? null : JSON.parse(place.textContent);

/** The answer to a request about the collection of the page; undefined if the page carries none. */
export function carriedAnswer(path, body) {
  const [, , kind, id] = path.split("?")[0].split("/").map(decodeURIComponent);
  if (kind === undefined) return carried.collection;
  if (kind === "stories") return storyAnswer(rowOf(id));
  if (kind === "explain") return pairAnswer(rowOf(body.left.id), rowOf(body.right.id));
  if (kind === "concordance") return concordance(body.phrase);
  if (kind === "project") return keptProject(body);
  if (kind === "agreement") return carried.answers.agreement?.[new URLSearchParams(path.split("?")[1]).get("column")];
  return carried.answers[kind];
}

const rowOf = (id) => carried.stories.findIndex((story) => story.id === id);
const summary = ({ id, title, metadata }) => ({ id, title: title || id, metadata });

function storyAnswer(row) {
  const story = carried.stories[row];
  if (!story) return undefined;
  const nearest = story.near.map(([other, similarity, alike], place) => ({
    ...summary(carried.stories[other]),
    similarity,
    standing: { rank: place + 1, of: carried.stories.length - 1, alike },
    snippet: strongestPassage(row, other),
  }));
  return { ...summary(story), text: story.text, words: story.words, nearest };
}

/** The passage of the other story with the strongest link. */
function strongestPassage(row, other) {
  const pair = carried.pairs[`${Math.min(row, other)}-${Math.max(row, other)}`];
  if (!pair?.links.length) return "";
  return passageOf(carried.stories[other], pair.links[0][row < other ? 1 : 0]).text;
}

/** Two stories with their links; without links if the page does not carry those of this pair. */
function pairAnswer(left, right) {
  if (left < 0 || right < 0) return undefined;
  const isTurned = left > right;
  const pair = carried.pairs[isTurned ? `${right}-${left}` : `${left}-${right}`];
  const sides = [left, right].map((row) => {
    const story = carried.stories[row];
    const passages = pair ? story.passages.map((_, number) => passageOf(story, number)) : [{ text: story.text, start: 0, end: 0 }];
    return { ...summary(story), passages };
  });
  const links = (pair?.links ?? []).map(([first, second, share, similarity, direction]) => (isTurned
    ? { left: second, right: first, share, similarity, direction: TURNED[direction] }
    : { left: first, right: second, share, similarity, direction }));
  return { ...pair, similarity: pair?.similarity ?? similarityOf(left, right), closer: turned(pair?.closer, isTurned),
    hubness: turned(pair?.hubness, isTurned), left: sides[0], right: sides[1], links };
}

const TURNED = { both: "both", "a to b": "b to a", "b to a": "a to b" };
const turned = (values, isTurned) => (values && isTurned ? [...values].reverse() : values ?? null);

/** The similarity of a pair on the map; null if the page does not carry it. */
function similarityOf(left, right) {
  const { similarities, tree } = carried.answers.map;
  const [row, column] = [left, right].map((story) => tree?.order.indexOf(carried.stories[story].id));
  return similarities?.[row][column] ?? null;
}

/** A passage of a story by its number; it is carried as its place in the text, or as text where it stands in none. */
function passageOf(story, number) {
  const passage = story.passages[number];
  if (typeof passage === "string") return { text: passage, start: 0, end: 0 };
  const [start, end] = passage;
  return { text: characters(story.text, start, end), start, end };
}

/** Stories with exact words, as far as the page carries their texts. */
function concordance(phrase) {
  const words = plainText(phrase);
  const lines = carried.stories.filter((story) => plainText(story.text).includes(words)).map(summary);
  return { total: lines.length, stories: lines.length, lines };
}

const plainText = (text) => text.toLowerCase().normalize("NFC").replace(/\s+/g, " ");

const KEPT = `project:${decodeURIComponent(location.pathname)}`;

/** Lists and notes are kept by the browser, for the place of the file. */
function keptProject(body) {
  if (body === undefined) return JSON.parse(localStorage.getItem(KEPT)) ?? { lists: [], notes: [], settings: {}, changes: 0, can_redo: false };
  return null;
}

/** Keep a changed project. */
export function keepProject(project) {
  localStorage.setItem(KEPT, JSON.stringify(project));
}
