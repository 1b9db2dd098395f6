// The stories that a reader has put on a list, one list a collection; kept while the tab is open.

const changes = new EventTarget();
const key = (collection) => `chosen:${collection}`;
const lists = new Map();

/** Return the list of a collection as a map from ids to stories. */
function listOf(collection) {
  if (!lists.has(collection)) {
    const stories = JSON.parse(sessionStorage.getItem(key(collection)) ?? "[]");
    lists.set(collection, new Map(stories.map((story) => [story.id, story])));
  }
  return lists.get(collection);
}

/** Return the chosen stories, {id, title}, in the order in which they were chosen. */
export const chosenStories = (collection) => [...listOf(collection).values()];

export const isChosen = (collection, id) => listOf(collection).has(id);

/** Replace the list. */
export function choose(collection, stories) {
  const list = stories.map(({ id, title }) => ({ id, title }));
  sessionStorage.setItem(key(collection), JSON.stringify(list));
  lists.delete(collection);
  changes.dispatchEvent(new Event("change"));
}

/** Add stories that are not on the list yet. */
export function addStories(collection, stories) {
  const others = stories.filter((story) => !isChosen(collection, story.id));
  choose(collection, [...chosenStories(collection), ...others]);
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
