// The stories that a reader has put on a list, one list a collection; kept while the tab is open.

const changes = new EventTarget();
const key = (collection) => `chosen:${collection}`;

/** Return the chosen stories, {id, title}, in the order in which they were chosen. */
export function chosenStories(collection) {
  return JSON.parse(sessionStorage.getItem(key(collection)) ?? "[]");
}

export const isChosen = (collection, id) => chosenStories(collection).some((story) => story.id === id);

/** Replace the list. */
export function choose(collection, stories) {
  const list = stories.map(({ id, title }) => ({ id, title }));
  sessionStorage.setItem(key(collection), JSON.stringify(list));
  changes.dispatchEvent(new Event("change"));
}

/** Add stories that are not on the list yet. */
export function addStories(collection, stories) {
  const present = chosenStories(collection);
  const ids = new Set(present.map((story) => story.id));
  choose(collection, [...present, ...stories.filter((story) => !ids.has(story.id))]);
}

/** Put a story on the list, or take it off. */
export function toggle(collection, story) {
  const others = chosenStories(collection).filter((each) => each.id !== story.id);
  if (isChosen(collection, story.id)) choose(collection, others);
  else choose(collection, [...others, story]);
}

/** Call a function whenever a list changes, until the view is left. */
export function whenChosen(listener, signal) {
  changes.addEventListener("change", listener, { signal });
}
