// Branches, titles and a heat map of the similarities, story by story.

import { address } from "./address.js";
import { channels, color, make, makeSvg } from "./dom.js";
import { storyLink } from "./parts.js";
import { titleOf } from "./labels.js";
import { rankText } from "./standing.js";
import { decimals, t } from "./texts.js";

/** Least and largest height of a story, in pixels. */
const ROWS = [14, 26];
/** Pixels of the whole tree, as far as the heights of its stories allow. */
const HEIGHT = 1000;
const HEAT = Array.from({ length: 6 }, (_, number) => `--heat-${number}`);

/** Draw a map as a tree. Returns its element, recolor(colors, values) and mark(), which follows the list of stories. */
export function treeOf(map, actions) {
  const tree = new Tree(map, actions);
  return { element: tree.element, recolor: (colors, values) => tree.recolor(colors, values), mark: () => tree.mark() };
}

class Tree {
  constructor({ points, tree, similarities }, actions) {
    this.points = points;
    this.actions = actions;
    this.similarities = similarities;
    this.place = new Map(points.map((point, place) => [point.id, place]));
    this.order = tree.order.map((id) => points[this.place.get(id)]);
    this.leaves = this.order.map((point) => this.leaf(point));
    this.canvas = make("canvas", { role: "img", "aria-label": t("map.heat_label") });
    this.readout = make("p", { class: "readout" }, t("map.tree_hint"));
    this.scale = make("div", { class: "scale" });
    const n = this.order.length;
    const row = Math.max(ROWS[0], Math.min(ROWS[1], HEIGHT / n));
    this.element = make("div", {},
      make("div", { class: "tree", styles: { "--rows": n, "--row": `${row}px` } },
        branches(tree, this.order, points, actions), make("ol", { class: "leaves" }, this.leaves),
        make("div", { class: "heat" }, this.canvas), make("div"), make("div"), this.scale),
      this.readout);
    this.listen();
  }

  leaf(point) {
    const title = titleOf(this.actions.collection, point);
    const control = make("button", { type: "button", title, "aria-pressed": "false" }, title);
    control.addEventListener("click", () => this.actions.toggle(point));
    return make("li", {}, control, make("small"));
  }

  recolor(colors, values) {
    this.order.forEach((point, row) => {
      const place = this.place.get(point.id);
      const leaf = this.leaves[row];
      leaf.style.borderColor = colors[place];
      leaf.lastChild.textContent = values === null ? "" : values[place];
    });
    this.drawHeat();
    this.mark();
  }

  mark() {
    this.order.forEach((point, row) => {
      const chosen = this.actions.isChosen(point);
      this.leaves[row].classList.toggle("chosen", chosen);
      this.leaves[row].firstChild.setAttribute("aria-pressed", chosen);
    });
  }

  /** A cell a pair, from the least to the most similar; the diagonal is left gray. */
  drawHeat() {
    const { similarities, canvas } = this;
    const n = similarities.length;
    const pairs = similarities.flatMap((row, y) => row.filter((_, x) => x !== y));
    const [least, most] = pairs.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
    canvas.width = canvas.height = n;
    const brush = canvas.getContext("2d");
    const diagonal = color("--line");
    const shade = shader(HEAT.map(channels));
    similarities.forEach((row, y) => row.forEach((value, x) => {
      brush.fillStyle = x === y ? diagonal : shade((value - least) / Math.max(most - least, 1e-9));
      brush.fillRect(x, y, 1, 1);
    }));
    const bar = make("i", { "aria-hidden": "true", styles: { background: `linear-gradient(90deg, ${HEAT.map(color).join(",")})` } });
    this.scale.replaceChildren(decimals(least), bar, decimals(most));
  }

  listen() {
    const cell = (event) => {
      const n = this.order.length;
      const box = this.canvas.getBoundingClientRect();
      const at = (share) => this.order[Math.min(n - 1, Math.max(0, Math.floor(share * n)))];
      return [at((event.clientY - box.y) / box.height), at((event.clientX - box.x) / box.width)];
    };
    this.canvas.addEventListener("mousemove", (event) => this.readPair(...cell(event)));
    this.canvas.addEventListener("click", (event) => {
      const [one, other] = cell(event);
      if (one === other) this.actions.toggle(one);
      else location.hash = address(this.actions.collection.name, "compare", [one.id, other.id]);
    });
  }

  readPair(one, other) {
    if (one === other) {
      this.readout.replaceChildren(storyLink(this.actions.collection, one));
      return;
    }
    const row = this.similarities[this.order.indexOf(one)];
    const similarity = row[this.order.indexOf(other)];
    const rank = 1 + row.filter((value, place) => value > similarity && this.order[place] !== one).length;
    const [left, right] = [one, other].map((point) => titleOf(this.actions.collection, point));
    this.readout.textContent = `${left} – ${right}: ${rankText({ rank, of: row.length - 1 })} · ${decimals(similarity)}`;
  }
}

/** Color of a share from 0 to 1 between the colors of a scale, each [red, green, blue]. */
function shader(parts) {
  return (share) => {
    const at = Math.max(0, Math.min(1, share)) * (parts.length - 1);
    const low = Math.min(parts.length - 2, Math.floor(at));
    const mixed = parts[low].map((part, channel) => Math.round(part + (at - low) * (parts[low + 1][channel] - part)));
    return `rgb(${mixed.join(",")})`;
  };
}

/** Branches from the joins [a, b, height, count] of stories and earlier joins; a click takes all stories of a branch. */
function branches({ merges }, order, points, actions) {
  const row = new Map(order.map((point, place) => [point.id, place + 0.5]));
  const nodes = points.map((point) => ({ height: null, row: row.get(point.id), members: [point] }));
  const heights = merges.map(([, , height]) => height);
  const [lowest, highest] = [Math.min(...heights), Math.max(...heights)];
  const start = lowest - 0.05 * (highest - lowest || 1);
  const x = (height) => 100 * (1 - ((height ?? start) - start) / (highest - start || 1));
  const drawing = makeSvg("svg", { class: "branches", viewBox: `0 0 100 ${order.length}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  for (const [a, b, height] of merges) {
    const [one, other] = [nodes[a], nodes[b]];
    const members = [...one.members, ...other.members];
    const path = `M${x(one.height)} ${one.row}H${x(height)}V${other.row}H${x(other.height)}`;
    const branch = makeSvg("g", { onclick: () => actions.add(members) },
      makeSvg("path", { d: path, class: "reach" }), makeSvg("path", { d: path }));
    drawing.append(branch);
    nodes.push({ height, row: (one.row + other.row) / 2, members });
  }
  return drawing;
}
