// The place of a reader in each view of the history: Back returns to it, with what was open.

/** Milliseconds in which a view that is still computed may grow to its place. */
const PATIENCE = 10_000;
const key = () => `place:${history.state?.place}`;
let restoring = false;

/** Name the present entry of the history; returns whether the reader has been there before. */
export function enterPlace() {
  history.scrollRestoration = "manual";
  if (history.state?.place) return true;
  history.replaceState({ ...history.state, place: `${Date.now()}-${Math.random()}` }, "");
  return false;
}

/** Keep the place whenever it changes. */
export function keepPlace(main) {
  const keep = () => {
    if (restoring || main.hasAttribute("aria-busy")) return;
    sessionStorage.setItem(key(), JSON.stringify({ top: scrollY, open: openParts(main) }));
  };
  addEventListener("scroll", keep, { passive: true });
  main.addEventListener("toggle", keep, true);
  main.addEventListener("click", () => setTimeout(keep));
}

/** Return to the place: open what was open, then scroll, once the view is tall enough. */
export function restorePlace(main, signal) {
  const place = JSON.parse(sessionStorage.getItem(key()) ?? "null");
  if (place === null) return;
  restoring = true;
  const stop = new AbortController();
  const end = () => {
    restoring = false;
    stop.abort();
  };
  const go = () => {
    openAgain(main, place.open);
    scrollTo(0, place.top);
    if (Math.abs(scrollY - place.top) < 2) end();
  };
  // Whoever scrolls in the meantime is where they want to be.
  for (const event of ["wheel", "touchstart", "keydown", "pointerdown"]) addEventListener(event, end, { signal: stop.signal });
  signal.addEventListener("abort", end, { signal: stop.signal });
  const observer = new ResizeObserver(go);
  observer.observe(main);
  stop.signal.addEventListener("abort", () => observer.disconnect());
  setTimeout(end, PATIENCE);
}

const opened = (main) => [...main.querySelectorAll("details, button[aria-expanded]")];
const isOpen = (part) => part.open ?? part.getAttribute("aria-expanded") === "true";
const openParts = (main) => opened(main).map((part, place) => (isOpen(part) ? place : -1)).filter((place) => place >= 0);

function openAgain(main, places) {
  const parts = opened(main);
  for (const part of places.map((place) => parts[place])) {
    if (!part || isOpen(part)) continue;
    if (part.tagName === "DETAILS") part.open = true;
    else part.click();
  }
}
