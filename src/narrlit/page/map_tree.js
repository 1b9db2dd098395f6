// Branches, titles and a heat map of the similarities, story by story.

import { address } from "./address.js";
import { channels, color, make, makeSvg } from "./dom.js";
import { titleOf } from "./labels.js";
import { drawingOf, keyOf, LINE, textWidth } from "./map_drawing.js";
import { storyLink } from "./parts.js";
import { rankText } from "./standing.js";
import { decimals, t } from "./texts.js";

/** Least and largest height of a story, in pixels. */
const ROWS = [14, 26];
/** Pixels of the whole tree, as far as the heights of its stories allow. */
const HEIGHT = 1000;
const HEAT = Array.from({ length: 6 }, (_, number) => `--heat-${number}`);
/** Shades of the heat map; cells of one shade are one path. */
const SHADES = 48;
/** Distances between two numbers of the axis, and the most numbers. */
const STEPS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5];
const MOST_TICKS = 5;
/** Pixels of a drawing: height of a story, width of the branches, of a strip of color. */
const DRAWN = { row: 16, branches: 260, strip: 6 };

/** A tree: its element; recolor(colors, values), mark(), fade(faded) and focus(story, others) change it, svg(key) draws it. */
export class Tree {
  constructor({ points, groups, tree, similarities }, actions) {
    this.actions = actions;
    this.points = points;
    this.similarities = similarities;
    this.place = new Map(points.map((point, place) => [point.id, place]));
    this.order = tree.order.map((id) => points[this.place.get(id)]);
    this.row = new Map(this.order.map((point, row) => [point.id, row]));
    this.leaves = this.order.map((point) => this.leaf(point));
    this.joins = joinsOf(tree, points, this.row);
    this.branches = this.drawnBranches();
    this.cells = makeSvg("g");
    this.outlines = groups.map((group) => this.outline(group)).filter(Boolean);
    this.cross = ["chosen", "other"].map((name) => makeSvg("rect", { class: name, visibility: "hidden", ...LINE, "stroke-width": 2 }));
    const n = this.order.length;
    const box = { viewBox: `0 0 ${n} ${n}`, preserveAspectRatio: "none" };
    this.heat = makeSvg("svg", { ...box, class: "heat", role: "img", "aria-label": t("map.heat_label") },
      this.cells, this.outlines, this.cross);
    this.readout = make("p", { class: "readout" }, t("map.tree_hint"));
    this.scale = make("div", { class: "scale" });
    const row = Math.max(ROWS[0], Math.min(ROWS[1], HEIGHT / n));
    this.element = make("div", {},
      make("div", { class: "tree", styles: { "--rows": n, "--row": `${row}px` } },
        this.branches, make("ol", { class: "leaves" }, this.leaves), this.heat,
        this.axis(tree), make("div"), this.scale),
      this.readout);
    this.listen();
  }

  leaf(point) {
    const title = titleOf(this.actions.collection, point);
    const control = make("button", { type: "button", title, "aria-pressed": "false" }, title);
    control.addEventListener("click", () => this.actions.show(point));
    return make("li", {}, control, make("small"));
  }

  /** Branches between the joins; a click takes all stories of a branch. */
  drawnBranches() {
    const drawing = makeSvg("svg", { class: "branches", viewBox: `0 0 100 ${this.order.length}`, preserveAspectRatio: "none", "aria-hidden": "true" });
    for (const { path, members } of this.joins.list) {
      drawing.append(makeSvg("g", { onclick: () => this.actions.add(members) },
        makeSvg("path", { d: path, class: "reach" }), makeSvg("path", { d: path, ...LINE, "stroke-width": 1.5 })));
    }
    return drawing;
  }

  /** A frame around the cells of a group, whose stories are neighbors in the order. */
  outline(group) {
    const rows = this.order.map((point, row) => (point.group === group.number ? row : -1)).filter((row) => row >= 0);
    const size = rows.length;
    return size ? makeSvg("rect", { x: rows[0], y: rows[0], width: size, height: size, ...LINE, "stroke-width": 1.5 }) : null;
  }

  /** Similarities at which branches join, below the branches. */
  axis({ top }) {
    this.ticks = ticksOf(top, this.joins);
    return make("div", { class: "ticks", "aria-hidden": "true" }, this.ticks.map(({ x, text }) =>
      make("span", { styles: { left: `${x}%` } }, text)));
  }

  recolor(colors, values) {
    const edge = color("--edge");
    this.colors = this.order.map((point) => colors[this.place.get(point.id)]);
    this.order.forEach((point, row) => {
      const leaf = this.leaves[row];
      leaf.style.borderColor = this.colors[row];
      leaf.lastChild.textContent = values === null ? "" : values[this.place.get(point.id)];
    });
    this.joins.list.forEach(({ members }, number) => {
      const shades = new Set(members.map((point) => colors[this.place.get(point.id)]));
      const [shade] = shades;
      const isPlain = shades.size > 1 || shade === color("--none");
      this.branches.childNodes[number].lastChild.setAttribute("stroke", isPlain ? edge : shade);
    });
    for (const outline of this.outlines) outline.setAttribute("stroke", color("--ink"));
    this.cross.forEach((mark, side) => mark.setAttribute("stroke", color(side ? "--accent" : "--warning-edge")));
    this.drawHeat();
    this.mark();
  }

  mark() {
    this.order.forEach((point, row) => {
      this.leaves[row].classList.toggle("chosen", this.actions.isChosen(point));
    });
  }

  /** Fade stories, by their places among the points. */
  fade(faded) {
    this.order.forEach((point, row) => this.leaves[row].classList.toggle("faded", faded[this.place.get(point.id)]));
  }

  /** Mark a story and its nearest ones, whose row and column of cells are framed. */
  focus(point, others) {
    const near = new Set(others.map((other) => other.id));
    this.order.forEach((each, row) => {
      this.leaves[row].classList.toggle("focused", each.id === point.id);
      this.leaves[row].firstChild.setAttribute("aria-pressed", each.id === point.id);
      this.leaves[row].classList.toggle("near", near.has(each.id));
    });
    this.frame(point, others[0]);
  }

  frame(point, other) {
    const n = this.order.length;
    const places = [{ x: 0, y: this.row.get(point.id), width: n, height: 1 }, { x: this.row.get(other?.id), y: 0, width: 1, height: n }];
    this.cross.forEach((mark, side) => {
      mark.setAttribute("visibility", side && !other ? "hidden" : "visible");
      for (const [name, value] of Object.entries(places[side])) mark.setAttribute(name, value ?? 0);
    });
  }

  /** A cell a pair, from the least to the most similar; the diagonal is left gray. */
  drawHeat() {
    const { similarities } = this;
    const pairs = similarities.flatMap((row, y) => row.filter((_, x) => x !== y));
    const [least, most] = pairs.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
    const shade = shader(HEAT.map(channels));
    const diagonal = color("--line");
    const paths = new Map();
    similarities.forEach((row, y) => {
      const shades = row.map((value, x) => (x === y ? diagonal : shade((value - least) / Math.max(most - least, 1e-9))));
      for (let x = 0; x < shades.length;) {
        let end = x + 1;
        while (shades[end] === shades[x]) end += 1;
        paths.set(shades[x], `${paths.get(shades[x]) ?? ""}M${x} ${y}h${end - x}v1h${x - end}z`);
        x = end;
      }
    });
    this.cells.replaceChildren(...[...paths].map(([fill, d]) => makeSvg("path", { d, fill, "shape-rendering": "crispEdges" })));
    this.range = [decimals(least), decimals(most)];
    const bar = make("i", { "aria-hidden": "true", styles: { background: `linear-gradient(90deg, ${HEAT.map(color).join(",")})` } });
    this.scale.replaceChildren(this.range[0], bar, this.range[1]);
  }

  listen() {
    const cell = (event) => {
      const n = this.order.length;
      const box = this.heat.getBoundingClientRect();
      const at = (share) => this.order[Math.min(n - 1, Math.max(0, Math.floor(share * n)))];
      return [at((event.clientY - box.y) / box.height), at((event.clientX - box.x) / box.width)];
    };
    this.heat.addEventListener("mousemove", (event) => this.readPair(...cell(event)));
    this.heat.addEventListener("click", (event) => {
      const [one, other] = cell(event);
      if (one === other) this.actions.show(one);
      else location.hash = address(this.actions.collection.name, "compare", [one.id, other.id]);
    });
  }

  readPair(one, other) {
    this.frame(one, other);
    if (one === other) {
      this.readout.replaceChildren(storyLink(this.actions.collection, one));
      return;
    }
    const row = this.similarities[this.row.get(one.id)];
    const similarity = row[this.row.get(other.id)];
    const rank = 1 + row.filter((value, place) => value > similarity && this.order[place] !== one).length;
    const [left, right] = [one, other].map((point) => titleOf(this.actions.collection, point));
    this.readout.textContent = `${left} – ${right}: ${rankText({ rank, of: row.length - 1 })} · ${decimals(similarity)}`;
  }

  /** The tree as a drawing of its own: branches, titles with colors, cells, and what the colors mean. */
  svg(key) {
    const n = this.order.length;
    const size = n * DRAWN.row;
    const titles = this.order.map((point) => titleOf(this.actions.collection, point));
    const widest = Math.max(...titles.map(textWidth));
    const [left, right] = [DRAWN.branches + DRAWN.strip + 6, DRAWN.branches + DRAWN.strip + widest + 18];
    const nested = (source, x, width) => {
      const copy = source.cloneNode(true);
      for (const part of copy.querySelectorAll(".reach, [visibility=hidden], .chosen, .other")) part.remove();
      for (const name of ["class", "role", "aria-label", "aria-hidden"]) copy.removeAttribute(name);
      for (const [name, value] of Object.entries({ x, y: 0, width, height: size, overflow: "visible" })) copy.setAttribute(name, value);
      return copy;
    };
    const gradient = makeSvg("linearGradient", { id: "heat" }, HEAT.map((name, place) =>
      makeSvg("stop", { offset: place / (HEAT.length - 1), "stop-color": color(name) })));
    const ink = color("--ink");
    const rows = titles.map((title, row) => [
      makeSvg("rect", { x: DRAWN.branches, y: row * DRAWN.row, width: DRAWN.strip, height: DRAWN.row, fill: this.colors[row] }),
      makeSvg("text", { x: left, y: (row + 0.72) * DRAWN.row, fill: ink }, title)]);
    const ticks = this.ticks.map(({ x, text }) =>
      makeSvg("text", { x: (x * DRAWN.branches) / 100, y: size + 16, fill: color("--muted"), "text-anchor": "middle" }, text));
    const scale = [
      makeSvg("rect", { x: right + 50, y: size + 8, width: Math.max(size - 100, 20), height: 10, fill: "url(#heat)" }),
      makeSvg("text", { x: right, y: size + 17, fill: ink }, this.range[0]),
      makeSvg("text", { x: right + size, y: size + 17, fill: ink, "text-anchor": "end" }, this.range[1])];
    const parts = [makeSvg("defs", {}, gradient), nested(this.branches, 0, DRAWN.branches), nested(this.heat, right, size), rows, ticks, scale];
    const width = right + size;
    const legend = keyOf(key, size + 34, width);
    return drawingOf([...parts, legend.element], width, size + 34 + legend.height);
  }
}

/** Color of a share from 0 to 1 between the colors of a scale, each [red, green, blue], as one of some shades. */
function shader(parts) {
  return (share) => {
    const at = (Math.round(Math.max(0, Math.min(1, share)) * SHADES) / SHADES) * (parts.length - 1);
    const low = Math.min(parts.length - 2, Math.floor(at));
    const mixed = parts[low].map((part, channel) => Math.round(part + (at - low) * (parts[low + 1][channel] - part)));
    return `rgb(${mixed.join(",")})`;
  };
}

/** The lines of joins [a, b, height, count] of stories and earlier joins, each with its stories; x(height) is 0 to 100. */
function joinsOf({ merges }, points, row) {
  const nodes = points.map((point) => ({ height: null, row: row.get(point.id) + 0.5, members: [point] }));
  const heights = merges.map(([, , height]) => height);
  const [lowest, highest] = [Math.min(...heights), Math.max(...heights)];
  const start = lowest - 0.05 * (highest - lowest || 1);
  const x = (height) => 100 * (1 - ((height ?? start) - start) / (highest - start || 1));
  const list = merges.map(([a, b, height]) => {
    const [one, other] = [nodes[a], nodes[b]];
    const members = [...one.members, ...other.members];
    nodes.push({ height, row: (one.row + other.row) / 2, members });
    return { path: `M${x(one.height)} ${one.row}H${x(height)}V${other.row}H${x(other.height)}`, members };
  });
  return { list, x, start, highest };
}

/** Round similarities between the first and the last join, each with its place. */
function ticksOf(top, { x, start, highest }) {
  const [least, most] = [top - highest, top - start];
  const step = STEPS.find((size) => (most - least) / size <= MOST_TICKS) ?? 10;
  const first = Math.ceil(least / step - 1e-6);
  const last = Math.floor(most / step + 1e-6);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, place) => {
    const similarity = (first + place) * step;
    return { x: x(top - similarity), text: decimals(similarity, step < 0.1 ? 2 : 1) };
  });
}
