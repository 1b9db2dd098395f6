// All collections, imports that are not finished, and a place to drop new stories.

import { address } from "../address.js";
import { get, path, remove, upload } from "../api.js";
import { announce, make, pause } from "../dom.js";
import { chosenFiles, droppedFiles, readable } from "../dropped_files.js";
import { attempt, button, confirmed, emptyState, linkButton, progressBar } from "../parts.js";
import { counted, number, percent, t, term } from "../texts.js";
import { importAddress, STATUS } from "./import.js";

/** Milliseconds between two looks at imports that go on. */
const FOLLOWING = 2000;

export async function collectionsView({ settings, signal }) {
  const place = make("div", {});
  const draw = async () => {
    const [collections, imports] = await Promise.all([get("collections", signal), get("imports", signal)]);
    const open = imports.filter((each) => each.status !== "done");
    const focused = document.activeElement?.getAttribute("href");
    place.replaceChildren(
      open.length ? make("section", {}, make("h2", {}, t("imports.title")), make("ul", { class: "cards" }, open.map(importCard))) : "",
      collections.length
        ? make("ul", { class: "cards" }, collections.map((each) => collectionCard(each, settings)))
        : emptyState(t("collections.none"), t(settings.writable ? "collections.none_text" : "collections.none_fixed")));
    if (focused) place.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
    return open.some((each) => each.status === "embedding" || each.status === "reading");
  };
  const follow = async () => {
    do await pause(FOLLOWING, signal);
    while (await draw());
  };
  if (await draw()) follow().catch(() => null);  // a server that has stopped is told by the next step
  return make("div", {}, make("h1", {}, t("collections.title")), settings.writable ? dropZone(settings, signal) : null, place);
}

function collectionCard(collection, settings) {
  const { name } = collection;
  const columns = collection.columns.map((column) => column.name).join(", ");
  const card = make("li", {},
    make("h2", {}, make("a", { href: address(name, "search") }, name)),
    make("p", {}, counted("stories", collection.stories)),
    make("p", { class: "meta" }, term("term.model"), ` ${collection.model}`),
    columns ? make("p", { class: "meta" }, t("collections.columns", { columns })) : null,
    make("p", { class: "actions" },
      linkButton(t("nav.search"), address(name, "search")),
      linkButton(t("nav.map"), address(name, "map")),
      linkButton(t("nav.pairs"), address(name, "pairs")),
      linkButton(t("nav.catalog"), address(name, "catalog"))));
  if (settings.writable) card.lastChild.append(deleteButton(card, name));
  return card;
}

function deleteButton(card, name) {
  return button(t("action.delete"), async () => {
    if (!await confirmed(t("collections.delete_question", { name }), t("action.delete"))) return;
    await attempt(card, async () => {
      await remove(path("collections", name));
      card.remove();
      announce(t("collections.deleted", { name }));
    });
  }, { class: "quiet", "aria-label": `${t("action.delete")}: ${name}` });
}

function importCard(each) {
  const title = each.collection ?? counted("imports.files", each.files.length);
  return make("li", {},
    make("h3", {}, make("a", { href: importAddress(each.id) }, title)),
    make("p", {}, `${t(STATUS[each.status])}. ${counted("stories", each.stories)}`),
    each.words ? progressBar(each.done.words / each.words, title) : null,
    make("p", { class: "actions" }, linkButton(t("imports.continue"), importAddress(each.id))));
}

/** A place to drop files and folders, with buttons for those who do not drag. */
function dropZone(settings, signal) {
  const message = make("div", { class: "message", "aria-live": "polite" });
  const send = (files) => attempt(message, () => sendFiles(files, settings, message));
  const files = picker("files", { multiple: true, accept: settings.extensions.join(",") }, t("drop.files"), send);
  const folder = picker("folder", { webkitdirectory: true }, t("drop.folder"), send);
  const zone = make("section", { class: "drop", id: "drop" },
    make("h2", {}, t("drop.title")),
    make("p", {}, t("drop.text", { extensions: settings.extensions.join(" ") })),
    make("p", { class: "actions" }, files, folder),
    message);
  // The whole page takes the drop: a file that misses the frame must not replace the page.
  for (const event of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(event, (dragged) => {
      dragged.preventDefault();
      zone.classList.toggle("over", event === "dragover");
      if (event === "drop") droppedFiles(dragged.dataTransfer).then(send);
    }, { signal });
  }
  return zone;
}

function picker(name, attributes, text, send) {
  const input = make("input", { type: "file", id: `pick-${name}`, class: "unseen", ...attributes });
  input.addEventListener("change", () => send(chosenFiles(input)));
  return make("label", { class: "button", for: input.id }, text, input);
}

async function sendFiles(files, settings, message) {
  const { known, others } = readable(files, settings.extensions);
  if (known.length === 0) {
    message.replaceChildren(make("p", { class: "warning" }, t("drop.nothing", { extensions: settings.extensions.join(" ") })));
    return;
  }
  const bytes = known.reduce((sum, { file }) => sum + file.size, 0);
  if (bytes > settings.limits.upload_bytes) {
    const values = { size: megabytes(bytes), limit: megabytes(settings.limits.upload_bytes) };
    message.replaceChildren(make("p", { class: "warning" }, t("drop.large", values)));
    return;
  }
  const bar = progressBar(0, t("drop.sending"));
  const share = make("span", {}, "");
  message.replaceChildren(make("p", {}, counted("drop.sending_files", known.length), " ", share), bar);
  const created = await upload(known, (sent) => {
    bar.value = sent;
    share.textContent = percent(sent);
  });
  if (others.length) sessionStorage.setItem(`skipped:${created.id}`, JSON.stringify(others));
  location.hash = importAddress(created.id);
}

const megabytes = (bytes) => number(Math.ceil(bytes / 1e6));
