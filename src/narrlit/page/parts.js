// Parts that several views share.

import { address } from "./address.js";
import { ApiError } from "./api.js";
import { make } from "./dom.js";
import { labelPart, titleOf } from "./labels.js";
import { currentTitle, isChosen, toggle, whenChosen } from "./selection.js";
import { t } from "./texts.js";

/** A button. */
export function button(text, onclick, attributes = {}) {
  return make("button", { type: "button", onclick, ...attributes }, text);
}

/** A link that looks like a button. */
export function linkButton(text, href, attributes = {}) {
  return make("a", { class: "button", href, ...attributes }, text);
}

/** A field with its label above. */
export function field(label, control) {
  return make("label", { class: "field" }, make("span", {}, label), control);
}

/** A drop-down list of [value, text] pairs. */
export function select(options, chosen, onchange, attributes = {}) {
  const list = make("select", attributes, options.map(([value, text]) =>
    make("option", { value, selected: value === chosen }, text)));
  list.addEventListener("change", () => onchange(list.value));
  return list;
}

/** A bar from 0 to 1 with a name for screen readers; null: no end in sight. */
export function progressBar(share, label) {
  return make("progress", { max: 1, value: share, "aria-label": label });
}

/** What to do where there is nothing to see. */
export function emptyState(heading, text, ...actions) {
  return make("section", { class: "empty" }, make("h2", {}, heading), make("p", {}, text), make("p", {}, actions));
}

/** What went wrong. */
export function errorBox(error, again = () => location.reload()) {
  const message = error instanceof ApiError ? error.message : t("error.unreachable");
  if (!(error instanceof ApiError) && !(error instanceof TypeError)) console.error(error);
  return make("div", { class: "error", role: "alert" }, make("p", {}, message), button(t("error.again"), again));
}

/** Run what a button does; where it fails, say so beside the button. */
export async function attempt(place, action) {
  place.querySelector(":scope > .error")?.remove();
  try {
    return await action();
  } catch (error) {
    if (error.name !== "AbortError") {
      const box = errorBox(error);
      box.querySelector("button").remove();
      place.append(box);
    }
    return null;
  }
}

/** Ask before something is lost. */
export function confirmed(question, action) {
  return new Promise((resolve) => {
    const answer = (value) => {
      dialog.close();
      dialog.remove();
      resolve(value);
    };
    const heading = make("p", { id: "question" }, question);
    const dialog = make("dialog", { "aria-labelledby": "question" }, heading, make("p", { class: "actions" },
      button(action, () => answer(true), { class: "danger" }), button(t("action.cancel"), () => answer(false))));
    dialog.addEventListener("cancel", () => answer(false));
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** Columns of a story; in a list without those that differ in every story, such as names of files. */
export function metadataLine(metadata, collection = null) {
  const unique = new Set(collection?.columns.filter((each) => each.distinct === collection.stories).map((each) => each.name));
  const words = Object.entries(metadata).filter(([name, value]) => value !== null && value !== "" && !unique.has(name));
  return make("p", { class: "meta" }, words.map(([name, value], place) =>
    [place ? " · " : "", make("span", { title: name }, `${name} ${value}`)]));
}

/** The title of a story, as a link to it, with its second label. */
export function storyLink(collection, story, params = {}) {
  const link = make("a", { href: address(collection.name, "story", [story.id], params) }, story.title || story.id);
  return make("span", { class: "story" }, link, " ", labelPart(collection, story));
}

/** A button that puts a story on the list, or takes it off. */
export function listButton(collection, story, signal) {
  const control = button("", () => toggle(collection.name, story));
  const update = () => {
    const chosen = isChosen(collection.name, story.id);
    control.textContent = t(chosen ? "list.on" : "list.add", { list: currentTitle(collection.name) });
    control.setAttribute("aria-pressed", chosen);
    control.setAttribute("aria-label", `${control.textContent}: ${titleOf(collection, story)}`);
  };
  whenChosen(update, signal);
  update();
  return control;
}
