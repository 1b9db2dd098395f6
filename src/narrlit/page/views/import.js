// One import: how each file was understood, corrections, and progress until all stories are in the collection.

import { address } from "../address.js";
import { get, patch, path, post, remove } from "../api.js";
import { announce, make, pause } from "../dom.js";
import { attempt, button, confirmed, errorBox, field, linkButton, progressBar, select } from "../parts.js";
import { counted, duration, lengthText, messageText, number, t } from "../texts.js";

export const STATUS = {
  reading: "status.reading",
  ready: "status.ready",
  embedding: "status.embedding",
  paused: "status.paused",
  done: "status.done",
  failed: "status.failed",
};
/** Files that are listed at first; those with warnings come before the others. */
const SHOWN = 40;

/** Corrections are sent one after the other: each answer holds those before. */
let corrections = Promise.resolve();

export const importAddress = (id) => `#/?import=${encodeURIComponent(id)}`;

export async function importView({ params, signal }) {
  const id = params.get("import");
  const view = make("div", {});
  const redraw = (state) => view.replaceChildren(...drawn(state, redraw));
  const state = await get(path("imports", id), signal);
  redraw(state);
  follow(state, view, redraw, signal);
  return view;
}

/** Ask for the state every second; what a person is filling in is left alone. */
async function follow(first, view, redraw, signal) {
  const progressOf = (state) => JSON.stringify([state.status, state.done, state.files.length, state.files_read, state.seconds_left]);
  let last = first;
  try {
    for (;;) {
      await pause(1000, signal);
      const state = await get(path("imports", first.id), signal);
      if (progressOf(state) === progressOf(last)) continue;
      if (state.status !== last.status) announce(t(STATUS[state.status]));
      const focused = document.activeElement?.id;
      redraw(state);
      if (focused && focused !== "main") document.getElementById(focused)?.focus();
      last = state;
    }
  } catch (error) {
    if (!signal.aborted) view.append(errorBox(error));
  }
}

function drawn(state, redraw) {
  const parts = {
    reading: () => [make("p", {}, t("import.reading")), readProgress(state), files(state, redraw)],
    ready: () => [summary(state), startForm(state, redraw), files(state, redraw)],
    embedding: () => [progress(state, redraw)],
    paused: () => [progress(state, redraw)],
    done: () => [done(state)],
    failed: () => [failure(state), startForm(state, redraw), files(state, redraw)],
  };
  return [make("h1", {}, t(STATUS[state.status])), ...parts[state.status](), discard(state)];
}

function readProgress({ files_read: read, files: { length: all } }) {
  return make("div", {},
    progressBar(all ? read / all : null, t("status.reading")),
    make("p", { class: "meta" }, counted("import.files_read", all, { read: number(read) })));
}

function failure(state) {
  const again = state.files.some((file) => file.columns.length > 0);
  return make("div", {}, make("p", { class: "error", role: "alert" }, messageText(state.problem)), again ? make("p", {}, t("import.failed")) : null);
}

function summary(state) {
  const warned = state.files.filter((file) => file.warnings.length > 0).length;
  const languages = languagesText(state.files.filter((file) => !file.skipped));
  const skipped = JSON.parse(sessionStorage.getItem(`skipped:${state.id}`) ?? "[]");
  return make("div", {},
    make("p", { class: "finding" }, counted("import.found", state.stories, { words: number(state.words) })),
    make("p", {}, warned ? counted("import.warned", warned) : t("import.look")),
    languages.includes(",") ? make("p", { class: "warning" }, t("import.languages", { languages })) : null,
    skipped.length ? make("p", { class: "warning" }, t("import.skipped", { files: skipped.slice(0, 10).join(", ") })) : null);
}

/** Languages of the stories of files, the most frequent first; with their numbers if there are several. */
function languagesText(files) {
  const counts = new Map();
  for (const file of files) {
    for (const [code, n] of Object.entries(file.languages)) counts.set(code, (counts.get(code) ?? 0) + n);
  }
  const sorted = [...counts].sort((one, other) => other[1] - one[1]);
  return sorted.length === 1 ? sorted[0][0] : sorted.map(([code, n]) => `${code} ${number(n)}`).join(", ");
}

function startForm(state, redraw) {
  const name = make("input", { id: "collection-name", value: state.collection ?? state.name, required: true, maxlength: 80 });
  const form = make("form", { class: "tools" }, field(t("import.name"), name),
    make("button", { type: "submit", class: "primary", disabled: state.stories === 0 }, t("import.start")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(form, async () => redraw(await post(path("imports", state.id, "start"), { collection: name.value.trim() })));
  });
  return form;
}

function files(state, redraw) {
  const sorted = [...state.files].sort((a, b) => b.warnings.length - a.warnings.length);
  const list = make("ul", { class: "cards files" }, sorted.slice(0, SHOWN).map((file) => fileCard(state, file, redraw)));
  const rest = sorted.slice(SHOWN);
  const more = button(counted("import.more_files", rest.length), () => {
    list.append(...rest.map((file) => fileCard(state, file, redraw)));
    more.remove();
  });
  return make("section", {}, make("h2", {}, counted("imports.files", state.files.length)), list, rest.length ? more : null);
}

function fileCard(state, file, redraw) {
  const card = make("li", { class: file.skipped ? "skipped" : null });
  const facts = [counted("stories", file.stories), lengthText(file), languagesText([file])].filter(Boolean);
  const change = (body) => {
    corrections = corrections.then(() => attempt(card, async () => redraw(await patch(path("imports", state.id), body))));
  };
  const skip = make("input", { type: "checkbox", id: `skip-${file.name}`, checked: file.skipped });
  skip.addEventListener("change", () => {
    file.skipped = skip.checked;  // a second change may come before the answer to the first
    change({ skip: state.files.filter((each) => each.skipped).map((each) => each.name) });
  });
  card.append(
    make("h3", {}, file.name),
    make("p", { class: "meta" }, facts.join(" · ")),
    ...file.warnings.map((warning) => make("p", { class: "warning" }, messageText(warning))),
    file.columns.length ? columnChoice(file, change) : "",
    file.preview.length ? preview(file, state.files.length) : "",
    make("label", { class: "check" }, skip, t("import.skip")));
  return card;
}

/** Which column holds the text, the title and the id, and which others there are. */
function columnChoice(file, change) {
  const options = [["", "–"], ...file.columns.map((name) => [name, name])];
  const roles = [["text", t("import.column_text")], ["title", t("import.column_title")], ["id", t("import.column_id")]];
  const choices = roles.map(([role, label]) => {
    const choose = (column) => {
      file.chosen[role] = column || null;
      change({ columns: { [file.name]: file.chosen } });
    };
    return field(label, select(options, file.chosen[role] ?? "", choose, { id: `${role}-${file.name}` }));
  });
  const others = file.columns.filter((name) => !Object.values(file.chosen).includes(name)).join(", ");
  return make("div", {}, make("div", { class: "tools" }, choices),
    others ? make("p", { class: "meta" }, t("import.other_columns", { names: others })) : null);
}

function preview(file, files) {
  const rows = file.preview.map((story) => make("li", {},
    make("b", {}, story.title || story.id), ` (${lengthText(story)}) `,
    make("span", { class: "meta" }, story.beginning)));
  const open = files <= 3 || file.warnings.length > 0;
  return make("details", { open }, make("summary", {}, t("import.preview")), make("ul", {}, rows));
}

function progress(state, redraw) {
  const paused = state.status === "paused";
  let left = paused ? "" : t("import.loading");
  if (!paused && state.seconds_left !== null) left = t("import.left", { time: duration(state.seconds_left) });
  const words = t("import.words", { done: number(state.done.words), all: number(state.words) });
  const act = (name) => attempt(section, async () => redraw(await post(path("imports", state.id, name))));
  const section = make("section", {},
    make("p", { class: "finding" }, t("import.into", { name: state.collection })),
    progressBar(state.done.words / Math.max(1, state.words), words),
    make("p", {}, `${words} ${left}`),
    state.latest.length ? make("div", { class: "latest" },
      make("h2", {}, counted("import.arrived", state.done.stories)),
      make("ul", {}, [...state.latest].reverse().map((title) => make("li", {}, title))),
      make("p", {}, make("a", { href: address(state.collection, "search") }, t("import.search_now")))) : null,
    make("p", { class: "meta" }, t("import.safe")),
    make("p", { class: "actions" }, paused
      ? button(t("import.resume"), () => act("resume"), { class: "primary", id: "pause" })
      : button(t("import.pause"), () => act("pause"), { id: "pause" })));
  return section;
}

function done(state) {
  const { collection } = state;
  return make("section", {},
    make("p", { class: "finding" }, counted("import.done", state.done.stories, { name: collection })),
    make("p", { class: "actions" },
      linkButton(t("nav.search"), address(collection, "search"), { class: "button primary" }),
      linkButton(t("nav.map"), address(collection, "map")),
      linkButton(t("nav.pairs"), address(collection, "pairs"))));
}

function discard(state) {
  if (state.status === "done") return "";
  const place = make("p", { class: "actions" }, button(t("import.discard"), async () => {
    if (!await confirmed(t("import.discard_question"), t("import.discard"))) return;
    await attempt(place, async () => {
      await remove(path("imports", state.id));
      location.hash = "#/";
    });
  }, { class: "quiet", id: "discard" }));
  return place;
}
