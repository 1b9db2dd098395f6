// Show the stories of a triple below its map when the anchor is clicked or tapped.
for (const place of document.querySelectorAll("[data-map]")) {
  const show = () => {
    const source = Bokeh.documents.map((page) => page.get_model_by_name(place.dataset.map)).find(Boolean);
    const row = source.selected.indices[0];
    const names = row === undefined ? [] : ["answer", "anchor", "closer", "other"];
    place.replaceChildren(...names.map((name) => {
      const line = document.createElement("p");
      line.textContent = (name === "answer" ? "" : `${name}: `) + source.get(name)[row];
      return line;
    }));
  };
  place.parentElement.addEventListener("click", () => setTimeout(show, 50));
}
