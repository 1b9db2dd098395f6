// Requests to the server, relative to the address of the page.

import { carried, carriedAnswer } from "./carried.js";
import { saveFile } from "./saving.js";
import { messageText, t } from "./texts.js";

/** An answer that is no success, with what is wrong in the reader's language. */
export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Most characters of a request that goes on when the page is left: browsers allow 64 KiB. */
const OUTLASTING = 20_000;

async function request(method, path, { body, signal } = {}) {
  const options = { method, signal, headers: {} };
  if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
    options.keepalive = method !== "GET" && !signal && options.body.length <= OUTLASTING;
  }
  const response = await fetch(path, options);
  if (!response.ok) throw new ApiError(response.status, await messageOf(response));
  return response;
}

async function messageOf(response) {
  try {
    return messageText((await response.json()).error);
  } catch {
    return `${response.status} ${response.statusText}`;
  }
}

async function json(method, path, options) {
  if (carried) return answerOf(path, options.body);
  const response = await request(method, path, options);
  return response.status === 204 ? null : response.json();
}

function answerOf(path, body) {
  const answer = carriedAnswer(path, body);
  if (answer === undefined) throw new ApiError(404, t("error.not_carried"));
  return answer;
}

export const get = (path, signal) => json("GET", path, { signal });
export const post = (path, body, signal) => json("POST", path, { body, signal });
export const put = (path, body) => json("PUT", path, { body });
export const patch = (path, body) => json("PATCH", path, { body });
export const remove = (path, body) => json("DELETE", path, { body });

/** Join the parts of a path; each part is escaped. */
export function path(...parts) {
  return parts.map(encodeURIComponent).join("/");
}

/** Get what the server computes in the background: ask again while it answers 202. */
export async function getComputed(address, signal, pause) {
  if (carried) return answerOf(address);
  for (;;) {
    const response = await request("GET", address, { signal });
    const answer = await response.json();
    if (response.status !== 202) return answer;
    await pause(700, signal);
  }
}

/** Post a request and save the file that the server answers. */
export async function download(method, address, body) {
  const response = await request(method, address, { body });
  const name = fileName(response.headers.get("Content-Disposition") ?? "");
  saveFile(await response.blob(), name);
  return name;
}

function fileName(disposition) {
  const encoded = /filename\*=utf-8''([^;]+)/i.exec(disposition);
  if (encoded) return decodeURIComponent(encoded[1]);
  return /filename="?([^";]+)"?/.exec(disposition)?.[1] ?? "stories";
}

/** Upload files; `onProgress` gets the share that has been sent, which fetch does not tell. */
export function upload(files, onProgress) {
  const form = new FormData();
  for (const { file, name } of files) form.append("files", file, name);
  return new Promise((resolve, reject) => {
    const sender = new XMLHttpRequest();
    sender.responseType = "json";
    sender.upload.addEventListener("progress", (event) => onProgress(event.loaded / Math.max(event.total, 1)));
    sender.addEventListener("error", () => reject(new TypeError("upload")));
    sender.addEventListener("load", () => {
      if (sender.status < 300) resolve(sender.response);
      else reject(new ApiError(sender.status, sender.response?.error ? messageText(sender.response.error) : String(sender.status)));
    });
    sender.open("POST", "imports");
    sender.send(form);
  });
}
