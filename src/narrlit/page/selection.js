// The lists of stories of a collection, which its project keeps; one of them is in use.

import { change, projectOf, touch, whenChanged } from "./project.js";
import { t } from "./texts.js";

/** Name of the list that needs no name. */
const FIRST = "";
/** The ids of lists, which are never changed in place: a plane asks for each of its points. */
const idsOf = new WeakMap();
const key = (collection) => `list:${collection}`;

/** The names of all lists, that without a name first. */
export function listNames(collection) {
  const names = projectOf(collection).lists.map((list) => list.name);
  return [...new Set([FIRST, ...names, currentList(collection)])];
}

/** The name of the list in use. */
export const currentList = (collection) => sessionStorage.getItem(key(collection)) ?? FIRST;

/** What a list is called on the page. */
export const listTitle = (name) => (name === FIRST ? t("nav.list") : name);

/** The same of the list in use. */
export const currentTitle = (collection) => listTitle(currentList(collection));

/** Use another list, or a new one. */
export function useList(collection, name) {
  sessionStorage.setItem(key(collection), name);
  touch(collection);
}

/** Return the stories on the list in use, {id, title, metadata}, in the order in which they were chosen. */
export function chosenStories(collection, name = currentList(collection)) {
  return projectOf(collection).lists.find((list) => list.name === name)?.stories ?? [];
}

export function isChosen(collection, id) {
  const stories = chosenStories(collection);
  if (!idsOf.has(stories)) idsOf.set(stories, new Set(stories.map((story) => story.id)));
  return idsOf.get(stories).has(id);
}

/** Put stories on the list in use that are not on it yet. */
export function addStories(collection, stories) {
  const present = new Set(chosenStories(collection).map((story) => story.id));
  changeList(collection, stories.filter((story) => !present.has(story.id)), []);
}

/** Take stories off the list in use. */
export const removeStories = (collection, stories) => changeList(collection, [], stories);

/** Put a story on the list in use, or take it off. */
export function toggle(collection, story) {
  if (isChosen(collection, story.id)) removeStories(collection, [story]);
  else addStories(collection, [story]);
}

/** Give the list in use another name; where there is a list of this name, its stories follow those of that list. */
export function renameList(collection, name) {
  const [old, stories] = [currentList(collection), chosenStories(collection)];
  if (name === old) return;
  useList(collection, name);
  addStories(collection, stories);
  forget(collection, old);
}

/** Delete the list in use, and use the first one. */
export function deleteList(collection) {
  const name = currentList(collection);
  useList(collection, FIRST);
  forget(collection, name);
}

function forget(collection, name) {
  change(collection, { kind: "list", name, deleted: true },
    (project) => ({ ...project, lists: project.lists.filter((list) => list.name !== name) }));
}

function changeList(collection, add, remove) {
  if (add.length + remove.length === 0) return;
  const name = currentList(collection);
  const ids = (stories) => stories.map((story) => story.id);
  const gone = new Set(ids(remove));
  const added = add.map(({ id, title, metadata = {} }) => ({ id, title, metadata }));
  change(collection, { kind: "list", name, add: ids(add), remove: ids(remove) }, (project) => {
    const stories = [...chosenStories(collection).filter((story) => !gone.has(story.id)), ...added];
    const lists = project.lists.map((list) => (list.name === name ? { name, stories } : list));
    return { ...project, lists: lists.some((list) => list.name === name) ? lists : [...lists, { name, stories }] };
  });
}

/** Call a function whenever a list changes, until the view is left. */
export const whenChosen = whenChanged;
