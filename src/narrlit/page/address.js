// The address of a view, in the hash: #/COLLECTION/VIEW/ID/ID?name=value. Whoever gets it sees the same.

/** Read the hash. */
export function parseAddress(hash) {
  const [place, query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const [collection = null, view = null, ...ids] = place.split("/").filter(Boolean).map(decodeURIComponent);
  return { collection, view: view ?? (collection ? "search" : "collections"), ids, params: new URLSearchParams(query) };
}

/** Write the address of a view; parameters without a value are left out, a list gives one parameter a value. */
export function address(collection, view, ids = [], params = {}) {
  const place = [collection, view, ...ids].filter((part) => part !== null).map(encodeURIComponent).join("/");
  const query = params instanceof URLSearchParams ? params : new URLSearchParams();
  if (query !== params) {
    for (const [name, value] of Object.entries(params)) {
      for (const each of [value].flat()) if (each !== null && each !== undefined && each !== "") query.append(name, each);
    }
  }
  return `#/${place}${query.size ? `?${query}` : ""}`;
}

/** Change parameters of the present address without drawing the view anew. */
export function keepInAddress(params) {
  const { collection, view, ids, params: present } = parseAddress(location.hash);
  for (const [name, value] of Object.entries(params)) {
    if (value) present.set(name, value);
    else present.delete(name);
  }
  history.replaceState(history.state, "", address(collection, collection === null ? null : view, ids, present));
}
