// A reader's work on a collection, which the server keeps in one file: lists, notes, settings. Views read it at once; a
// change is shown at once, too, and sent in order.

import { ApiError, get, path, post } from "./api.js";
import { carried, keepProject } from "./carried.js";
import { announce } from "./dom.js";
import { messageText, t } from "./texts.js";

const EMPTY = { lists: [], notes: [], settings: {}, changes: 0, can_redo: false };
const changes = new EventTarget();
const projects = new Map();
/** Changes are sent one after the other, so that they are undone in their order: those that wait, and the last answer. */
const waiting = [];
let sending = Promise.resolve();
addEventListener("pagehide", () => {
  while (waiting.length) sendNext().catch(() => null);  // whoever leaves the page loses none
});

const base = (name) => `${path("collections", name)}/project`;

/** Get the project of a collection, after all changes have been sent. */
export async function loadProject(collection, signal) {
  await sending;
  keep(collection.name, collection.stories ? await get(base(collection.name), signal) : EMPTY);
}

/** The project of a collection as it is known. */
export const projectOf = (name) => projects.get(name) ?? EMPTY;

function keep(name, project) {
  projects.set(name, project);
  if (carried) keepProject(project);
  changes.dispatchEvent(new Event("change"));
}

/** Call a function whenever a project changes, until the view is left. */
export function whenChanged(listener, signal) {
  changes.addEventListener("change", listener, { signal });
}

/**
 * Change a project: `apply` returns the changed one, which is shown at once.
 *
 * Where the server refuses the change, the project is as it was, and the reader is told.
 */
export function change(name, body, apply) {
  const project = projectOf(name);
  keep(name, { ...apply(project), changes: project.changes + 1, can_redo: false });
  sending = sent(name, body).catch((error) => failed(name, error));
  return sending;
}

/** Send a change after those before it. */
function sent(name, body) {
  waiting.push([`${base(name)}/changes`, body]);
  return sending.then(sendNext);
}

const sendNext = async () => (waiting.length ? post(...waiting.shift()) : null);

async function failed(name, error) {
  announce(error instanceof ApiError ? error.message : t("error.unreachable"));
  changes.dispatchEvent(new CustomEvent("failure", { detail: error }));
  const project = await get(base(name)).catch(() => null);
  if (project) keep(name, project);
}

/** Let views that follow a project draw anew. */
export const touch = (name) => keep(name, projectOf(name));

/** Call a function with the error when the server refuses a change, until the view is left. */
export function whenFailed(listener, signal) {
  changes.addEventListener("failure", (event) => listener(event.detail), { signal });
}

/** Undo or redo the last change of any kind; the promise is there when the server has done so. */
export async function step(name, direction) {
  await sending;
  keep(name, await post(`${base(name)}/${direction}`));
}

/** The last changes, newest first. */
export async function historyOf(name, signal) {
  await sending;
  return get(`${base(name)}/history`, signal);
}

/** Add the changes of a project file. */
export async function importProject(name, file) {
  const response = await fetch(`${base(name)}/file`, { method: "POST", body: await file.arrayBuffer() });
  const answer = await response.json();
  if (!response.ok) throw new ApiError(response.status, messageText(answer.error));
  keep(name, await get(base(name)));
  return answer.changes;
}

/** The address of the project file. */
export const projectFile = (name) => `${base(name)}/file`;

/** The chosen value of a setting; undefined if none was chosen. */
export const settingOf = (name, setting) => projectOf(name).settings[setting];

/** Choose a setting. */
export function chooseSetting(name, setting, value) {
  if (settingOf(name, setting) === value) return sending;
  return change(name, { kind: "setting", name: setting, value },
    (project) => ({ ...project, settings: { ...project.settings, [setting]: value } }));
}

/** The notes on a story, or on all stories; those on passages after that on the story. */
export const notesOf = (name, id = null) => projectOf(name).notes.filter((note) => id === null || note.story.id === id);

/** All tags, in the order of the alphabet. */
export const tagsOf = (name) => [...new Set(projectOf(name).notes.flatMap((note) => note.tags))].sort();

/** Write values of columns into stories; the promise fails where the server refuses a value. */
export function writeValues(name, ids, values) {
  const answer = sent(name, { kind: "edit", ids, values });
  sending = answer.catch(() => null);
  return answer;
}

/** Write a note with its tags; without both, it is removed. */
export function writeNote(name, story, { start = null, end = null, passage = null }, text, tags) {
  const isHere = (note) => note.story.id === story.id && note.start === start && note.end === end;
  const note = { story, start, end, passage, text, tags, at: null };
  const body = { kind: "note", id: story.id, start, end, passage, text, tags };
  return change(name, body, (project) => {
    const others = project.notes.filter((each) => !isHere(each));
    return { ...project, notes: text || tags.length ? [...others, note] : others };
  });
}
