// Branches, titles and a heat map of the similarities, row by row.
(() => {
  const n = data.order.length;
  const row = new Map(data.order.map((story, at) => [story, at]));
  const tree = find("tree");
  const [branches, boxes, crossing] = tree.querySelectorAll("svg");
  const svg = (tag, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };
  const farthest = Math.max(...data.tree.map((join) => join[1]), 1e-9);
  const place = (distance) => 100 * (1 - distance / farthest);
  branches.setAttribute("viewBox", `0 0 100 ${n}`);
  for (const each of [boxes, crossing]) each.setAttribute("viewBox", `0 0 ${n} ${n}`);
  for (const [left, top, right, low, high] of data.tree) {
    branches.append(svg("path", { d: `M${place(left)} ${low + 0.5}H${place(top)}V${high + 0.5}H${place(right)}` }));
  }
  const groups = data.order.map((story) => data.groups[story]);
  data.colors.forEach((_, group) => {  // a group's stories are neighbors in the order
    const [at, size] = [groups.indexOf(group), groups.filter((each) => each === group).length];
    boxes.append(svg("rect", { x: at, y: at, width: size, height: size }));
  });
  const step = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5].find((size) => farthest / size <= 5) ?? 10;
  const last = Math.floor(data.top / step + 1e-6);
  const ticks = [...Array(6).keys()].map((below) => (last - below) * step).filter((tick) => data.top - tick <= farthest);
  tree.querySelector(".ticks").append(...ticks.map((tick) => {
    const span = make("span", percent(tick).replace(/\.?0+$/, "") || "0");
    span.style.left = `${place(data.top - tick)}%`;
    return span;
  }));

  // Heat map: white to dark blue between the least and the most similar pair.
  const stops = data.heat.map((color) => [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16)));
  const different = data.similarities.flatMap((values, at) => values.filter((_, other) => other !== at));
  const [least, most] = [different.reduce((a, b) => Math.min(a, b)), different.reduce((a, b) => Math.max(a, b))];
  const canvas = tree.querySelector("canvas");
  canvas.width = canvas.height = n;
  const image = canvas.getContext("2d").createImageData(n, n);
  data.order.forEach((story, y) => data.order.forEach((other, x) => {
    const share = ((data.similarities[story][other] - least) / Math.max(most - least, 1)) * (stops.length - 1);
    const at = Math.min(stops.length - 2, Math.max(0, Math.floor(share)));
    const color = x === y ? [234, 238, 242] : stops[at].map((low, part) => low + (share - at) * (stops[at + 1][part] - low));
    image.data.set([...color, 255], 4 * (y * n + x));
  }));
  canvas.getContext("2d").putImageData(image, 0, 0);
  const [low, high] = tree.querySelectorAll(".scale span");
  low.textContent = percent(least / 1000);
  high.textContent = percent(most / 1000);
  tree.querySelector(".scale i").style.background = `linear-gradient(90deg, ${data.heat.join(",")})`;

  const leaves = data.order.map((story) => make("li", [opener(story), make("small")]));
  tree.querySelector(".leaves").append(...leaves);
  const cell = (event) => {
    const box = canvas.getBoundingClientRect();
    const [x, y] = [(event.clientX - box.x) / box.width, (event.clientY - box.y) / box.height];
    return [y, x].map((share) => data.order[Math.min(n - 1, Math.max(0, Math.floor(share * n)))]);
  };
  const heat = tree.querySelector(".heat");
  heat.addEventListener("click", (event) => {
    const [story, other] = cell(event);
    choose(story, story === other ? undefined : other);
  });
  heat.addEventListener("mousemove", (event) => {
    const [story, other] = cell(event);
    find("readout").textContent = story === other ? label(story)
      : `${label(story)} – ${label(other)}: ${percent(data.similarities[story][other] / 1000)}`;
  });
  const marks = [[n, 1, "#e3b341"], [1, n, "#54aeff"]].map(([width, height, stroke]) => svg("rect", { width, height, stroke }));
  crossing.append(...marks);
  start({
    color(colors, column) {
      const color = (group) => (column.groups && data.colors[group]) || "#6e7781";
      branches.childNodes.forEach((path, at) => path.setAttribute("stroke", color(data.tree[at][5])));
      boxes.childNodes.forEach((box, group) => box.setAttribute("stroke", color(group)));
      leaves.forEach((leaf, at) => {
        const value = column.values[data.order[at]];
        leaf.style.borderColor = colors[data.order[at]];
        leaf.lastChild.textContent = column.groups ? "" : value;
      });
    },
    mark(story, other) {
      leaves.forEach((leaf, at) => {
        leaf.classList.toggle("chosen", data.order[at] === story);
        leaf.classList.toggle("other", data.order[at] === other);
      });
      marks[0].setAttribute("y", row.get(story));
      marks[1].setAttribute("x", row.get(other));
      find("readout").textContent = `${label(story)} – ${label(other)}: ${percent(data.similarities[story][other] / 1000)}`;
    },
    match(stories) {
      const matching = new Set(stories ?? data.order);
      leaves.forEach((leaf, at) => leaf.classList.toggle("faded", !matching.has(data.order[at])));
    },
  });
})();
