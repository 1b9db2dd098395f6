// Words of the interface in the reader's language, and numbers as that language writes them.

import { make } from "./dom.js";

export const LANGUAGES = { en: "English", de: "Deutsch" };
const wanted = [localStorage.getItem("language"), ...navigator.languages.map((tag) => tag.slice(0, 2))];
/** The language chosen before, or the browser's. */
export const language = wanted.find((tag) => tag in LANGUAGES) ?? "en";
let texts = {};

/** Take the texts of the language from those of all. */
export function useTexts(all) {
  texts = all[language];
  document.documentElement.lang = language;
}

/** Return a text; {name} in it is replaced. */
export function t(key, values = {}) {
  return texts[key].replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

/** Return a text for a number: KEY.one or KEY.other, in which {n} is the number. */
export function counted(key, n, values = {}) {
  return t(`${key}.${n === 1 ? "one" : "other"}`, { n: number(n), ...values });
}

/** Return the length of a text in words, or in characters for scripts without spaces. */
export function lengthText({ words, characters }) {
  return characters ? counted("characters", characters) : counted("words", words);
}

/** Return the text of a server's message, or its own English words if there is no text of its code. */
export function messageText({ message, code, values }) {
  const key = `problem.${code}`;
  const shown = {};
  for (const [name, value] of Object.entries(values)) shown[name] = typeof value === "number" ? number(value) : value;
  if (`${key}.one` in texts) return counted(key, values.n, shown);
  return key in texts ? t(key, shown) : t("problem.other", { message });
}

export const number = (value) => value.toLocaleString(language);
/** Write the place in an order: "2nd" in English, the number alone in languages that write it so. */
export function ordinal(n) {
  if (language !== "en") return number(n);
  const endings = { one: "st", two: "nd", few: "rd", other: "th" };
  return number(n) + endings[new Intl.PluralRules("en", { type: "ordinal" }).select(n)];
}

export const percent = (share) => share.toLocaleString(language, { style: "percent", maximumFractionDigits: 0 });

/** Write a similarity, with three decimals. */
export function decimals(value, digits = 3) {
  return value.toLocaleString(language, { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** Write a time in the unit that suits it. */
export function duration(seconds) {
  if (seconds < 60) return counted("time.seconds", Math.max(1, Math.round(seconds)));
  if (seconds < 5400) return counted("time.minutes", Math.round(seconds / 60));
  return counted("time.hours", Math.round(seconds / 3600));
}

/** Mark a word that the glossary explains on hover and focus: `key` of the word, `key`.about of what it means. */
export function term(key, word = t(key)) {
  const shown = make("span", { class: "term", tabindex: "0", "aria-describedby": "tip" }, word);
  const tip = document.getElementById("tip");
  const open = () => {
    tip.textContent = t(`${key}.about`);
    tip.hidden = false;
    const box = shown.getBoundingClientRect();
    const left = Math.min(box.left, document.documentElement.clientWidth - tip.offsetWidth - 8);
    tip.style.left = `${Math.max(8, left) + scrollX}px`;
    tip.style.top = `${box.bottom + 6 + scrollY}px`;
  };
  const close = () => (tip.hidden = true);
  for (const event of ["mouseenter", "focus"]) shown.addEventListener(event, open);
  for (const event of ["mouseleave", "blur"]) shown.addEventListener(event, close);
  shown.addEventListener("keydown", (event) => event.key === "Escape" && close());
  return shown;
}
