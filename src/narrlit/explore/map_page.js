// What dendrogram and plane share: colors, search, the nearest stories of a chosen one, and two texts side by side.
const data = JSON.parse(document.getElementById("data").textContent);
const find = (id) => document.getElementById(id);
const make = (tag, content = "", attributes = {}) => {
  const element = Object.assign(document.createElement(tag), attributes);
  element.append(...[content].flat());
  return element;
};
const percent = (similarity) => similarity.toFixed(3).replace(/^(-?)0/, "$1");
const label = (story) => data.stories[story].label;
const opener = (story, other) => make("button", label(story), { onclick: () => choose(story, other), title: label(story) });
let drawing = { color() {}, mark() {}, match() {} };  // dendrogram or plane, once it is there

// Colors of the chosen column: one a value, the most frequent first, or by rank for many numbers.
const colorsOf = (column) => {
  const values = column.values;
  const sizes = new Map();
  for (const value of values) if (value !== "" && value !== null) sizes.set(value, (sizes.get(value) ?? 0) + 1);
  const names = [...sizes.keys()];
  if (column.groups) return { colors: data.groups.map((group) => data.colors[group] ?? data.none), key: [] };
  if (names.length > data.palette.length && names.every((name) => isFinite(name))) {
    names.sort((a, b) => a - b);
    const step = data.sequence.length / names.length;
    const rank = new Map(names.map((name, at) => [name, Math.floor(at * step)]));
    const key = data.sequence.map((color, at) => [color, names[Math.ceil(at / step)]]);
    return { colors: values.map((value) => data.sequence[rank.get(value)] ?? data.none), key };
  }
  names.sort((a, b) => sizes.get(b) - sizes.get(a) || String(a).localeCompare(String(b), "en", { numeric: true }));
  const key = names.slice(0, data.palette.length).map((name, at) => [data.palette[at], name]);
  const color = new Map(key.map(([each, name]) => [name, each]));
  if (key.length < names.length || sizes.size === 0) key.push([data.none, "other"]);
  return { colors: values.map((value) => color.get(value) ?? data.none), key };
};

const recolor = () => {
  const column = data.columns[find("columns").selectedIndex];
  const { colors, key } = colorsOf(column);
  find("key").replaceChildren(...key.map(([color, name]) => {
    const box = make("span");
    box.style.background = color;
    return make("li", [box, String(name)]);
  }));
  drawing.color(colors, column);
};

const search = () => {
  const words = find("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = words.length === 0 ? null : data.stories.flatMap((story, at) => {
    const text = [story.id, story.title, ...story.text].join(" ").toLowerCase();
    return words.every((word) => text.includes(word)) ? [at] : [];
  });
  const count = matches === null ? [] : [make("span", `${matches.length.toLocaleString("en")} found`)];
  find("matches").replaceChildren(...count, ...(matches ?? []).slice(0, 8).map((story) => opener(story)));
  drawing.match(matches);
};

// One text, its linked sentences with a number; a stronger link has a darker ground.
const article = (story, links, side) => {
  const text = make("p", "", { className: "text" });
  const at = new Map(links.map((link, number) => [link[side], number]));
  data.stories[story].text.forEach((sentence, row) => {
    const number = at.get(row);
    if (number === undefined) return text.append(sentence, " ");
    const mark = make("span", [sentence, make("sup", String(number + 1))], { className: "linked" });
    mark.style.background = `rgba(84, 174, 255, ${0.12 + 0.5 * Math.min(1, links[number][2] / 0.4)})`;
    mark.dataset.link = number;
    text.append(mark, " ");
  });
  const meta = data.columns.filter((column) => !column.groups && column.values[story] !== "");
  const { id, title } = data.stories[story];
  const words = [...(title ? [id] : []), ...meta.map((column) => `${column.name} ${column.values[story]}`)];
  const heading = make("h3", title || `Story ${id}`);
  return make("article", [heading, make("p", words.join(" · "), { className: "meta" }), text]);
};

const linked = (event) => {
  const link = event.target.closest?.(".linked")?.dataset.link;
  for (const each of find("chosen").querySelectorAll(".linked")) {
    each.classList.toggle("partner", each.dataset.link === link);
    if (event.type === "click" && each.dataset.link === link && !each.contains(event.target)) {
      each.scrollIntoView({ block: "nearest", behavior: "smooth" });
    }
  }
};
find("chosen").addEventListener("mouseover", linked);
find("chosen").addEventListener("click", linked);

// Show a story, its nearest ones and, of a pair, both texts.
const choose = (story, other) => {
  other ??= data.near[story][0];
  const list = data.near[story].map((near, rank) => {
    const button = make("button", label(near), { onclick: () => choose(story, near), title: label(near) });
    return make("li", [button, make("span", percent(data.similarity[story][rank]))], { className: near === other ? "other" : "" });
  });
  const links = data.links[`${Math.min(story, other)}-${Math.max(story, other)}`] ?? [];
  const flip = story > other ? 1 : 0;
  const nearest = make("div", [make("h3", `Nearest to ${label(story)}`), make("ol", list)]);
  find("chosen").replaceChildren(nearest, article(story, links, flip), article(other, links, 1 - flip));
  drawing.mark(story, other);
};

const start = (mode) => {
  drawing = mode;
  find("columns").selectedIndex = Math.max(0, data.columns.findIndex((column) => column.first));
  find("columns").addEventListener("change", recolor);
  find("search").addEventListener("input", search);
  recolor();
  const first = data.similarity.reduce((best, row, at) => (row[0] > data.similarity[best][0] ? at : best), 0);
  choose(first);
};
