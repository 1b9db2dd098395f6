// Stories as points of a plane on a canvas: move, zoom, click and lasso.

import { color, make, makeSvg } from "./dom.js";
import { titleOf } from "./labels.js";
import { drawingOf, keyOf } from "./map_drawing.js";
import { button } from "./parts.js";
import { t } from "./texts.js";

/** Pixels from a point within which a click finds it. */
const REACH = 18;
/** Pixels that stay free around all points at first. */
const MARGIN = 36;
/** Radius from which a point is drawn as a circle; smaller ones are squares, which are drawn faster. */
const ROUND = 3;
/** Points in sight from which names of groups are written over them; of fewer, nothing may cover a point. */
const CROWDED = 500;
/** Pixels between a name and what it names, and height of a line. */
const GAP = 10;
const LINE = 15;
/** Characters of a title beside its point. */
const TITLE = 32;
/** Points in sight from which titles are not written. */
const TITLED = 250;
/** Least and largest magnification. */
const ZOOM = [0.5, 60];

/** Pixels by which an arrow key moves the plane. */
const STEP = 60;
const FONTS = { group: "600 13px system-ui, sans-serif", title: "11px system-ui, sans-serif" };

/** A magnification with its shift in pixels as text, for the address; null for that of all points. */
const viewText = ({ zoom, x, y }) => (zoom === 1 && x === 0 && y === 0 ? null : [zoom.toFixed(3), Math.round(x), Math.round(y)].join());

function viewOf(text) {
  const [zoom, x, y] = (text ?? "").split(",").map(Number);
  const isView = [zoom, x, y].every(Number.isFinite) && zoom >= ZOOM[0] && zoom <= ZOOM[1];
  return isView ? { zoom, x, y } : { zoom: 1, x: 0, y: 0 };
}

/** A plane: its element; recolor(colors), mark(), fade(faded) and focus(story, others) change it, svg(key) draws it. */
export class Plane {
  constructor({ points, groups }, actions) {
    this.points = points;
    this.actions = actions;
    this.labels = labelsOf(points, groups);
    this.colors = points.map(() => "gray");
    this.faded = points.map(() => false);
    this.lines = [];
    this.view = viewOf(actions.keptView());
    this.lasso = null;
    this.canvas = make("canvas", { role: "img", tabindex: 0, "aria-label": t("map.plane_label") });
    this.tip = make("div", { class: "tip", hidden: true });
    this.readout = make("p", { class: "readout", "aria-live": "off" }, t("map.plane_hint"));
    this.mode = button(t("map.lasso"), () => this.setLassoMode(!this.lassoMode), { "aria-pressed": "false", id: "lasso" });
    const controls = make("p", { class: "actions" },
      this.mode,
      button("+", () => this.zoomAt(1.4, this.middle()), { "aria-label": t("map.zoom_in") }),
      button("−", () => this.zoomAt(1 / 1.4, this.middle()), { "aria-label": t("map.zoom_out") }),
      button(t("map.all"), () => this.reset()));
    this.element = make("div", { class: "plane" }, controls, this.canvas, this.tip, this.readout);
    this.listen();
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  setLassoMode(on) {
    this.lassoMode = on;
    this.mode.setAttribute("aria-pressed", on);
    this.canvas.classList.toggle("crosshair", on);
  }

  recolor(colors) {
    this.colors = colors;
    this.draw();
  }

  mark() {
    this.draw();
  }

  /** Fade stories, by their places among the points. */
  fade(faded) {
    this.faded = faded;
    this.draw();
  }

  /** Join a story with its nearest ones. */
  focus(point, others) {
    this.shown = point;
    this.lines = others.map((other) => [point, other]);
    this.draw();
  }

  reset() {
    this.view = { zoom: 1, x: 0, y: 0 };
    this.draw();
  }

  /** The function from points to pixels of the canvas. */
  projection() {
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    this.bounds ??= boundsOf(this.points);
    const { left, bottom, width: across, height: up } = this.bounds;
    const { zoom, x: dx, y: dy } = this.view;
    const size = zoom * Math.min((width - 2 * MARGIN) / across, (height - 2 * MARGIN) / up);
    const [middleX, middleY] = [left + across / 2, bottom + up / 2];
    return ({ x, y }) => [width / 2 + dx + (x - middleX) * size, height / 2 + dy - (y - middleY) * size];
  }

  /** The place around which buttons and keys zoom: the story that is shown if it is in sight, or the middle. */
  middle() {
    const place = this.shown ? this.projection()(this.shown) : null;
    return place && this.isInSight(place) ? place : [this.canvas.clientWidth / 2, this.canvas.clientHeight / 2];
  }

  zoomAt(factor, at) {
    const zoom = Math.min(ZOOM[1], Math.max(ZOOM[0], this.view.zoom * factor));
    const real = zoom / this.view.zoom;
    const center = [this.canvas.clientWidth / 2, this.canvas.clientHeight / 2];
    const moved = [this.view.x, this.view.y].map((shift, axis) => {
      const from = at[axis] - center[axis];
      return from - (from - shift) * real;
    });
    this.view = { zoom, x: moved[0], y: moved[1] };
    this.draw();
  }

  /** Draw all at the next frame, however often it is asked until then. */
  draw() {
    this.isStale = true;
    this.refresh();
  }

  /** Draw the lasso over the points, which are drawn anew only where they have changed. */
  refresh() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      if (this.canvas.clientWidth === 0) return;
      if (this.isStale) {
        this.drawPoints();
        this.actions.keepView(viewText(this.view));
      }
      const brush = this.brushOf(this.canvas);
      brush.drawImage(this.picture, 0, 0, this.canvas.clientWidth, this.canvas.clientHeight);
      if (this.lasso) this.drawLasso(brush);
    });
  }

  /** An empty canvas of the size of the plane, in the pixels of the screen. */
  brushOf(canvas) {
    const ratio = devicePixelRatio || 1;
    canvas.width = this.canvas.clientWidth * ratio;
    canvas.height = this.canvas.clientHeight * ratio;
    const brush = canvas.getContext("2d");
    brush.scale(ratio, ratio);
    return brush;
  }

  /** Draw names and points to `picture`, color by color, those on the list last. */
  drawPoints() {
    this.isStale = false;
    this.picture ??= document.createElement("canvas");
    const brush = this.brushOf(this.picture);
    const project = this.projection();
    this.places = this.points.map(project);
    const inSight = this.places.filter((place, at) => !this.faded[at] && this.isInSight(place));
    const isCrowded = inSight.length > CROWDED;
    this.drawLines(brush, project);
    if (!isCrowded) this.drawNames(brush, this.namesAround(brush, project, inSight));
    const radius = this.radius();
    const chosen = [];
    for (const [shade, places] of byColor(this.colors)) {
      brush.fillStyle = shade;
      for (const place of places) {
        if (this.faded[place]) continue;
        if (this.actions.isChosen(this.points[place])) chosen.push(place);
        else drawPoint(brush, this.places[place], radius);
      }
    }
    brush.strokeStyle = color("--ink");
    brush.lineWidth = radius < ROUND ? 1 : 2.5;
    for (const place of chosen) {
      brush.fillStyle = this.colors[place];
      drawPoint(brush, this.places[place], radius < ROUND ? radius + 0.5 : radius + 2, true);
    }
    if (isCrowded) this.drawNames(brush, this.namesOver(brush, project));
  }

  isInSight([x, y]) {
    return x >= 0 && x <= this.canvas.clientWidth && y >= 0 && y <= this.canvas.clientHeight;
  }

  radius() {
    const largest = Math.max(2, Math.min(7, 90 / Math.sqrt(this.points.length)));
    return largest * Math.min(1.6, Math.max(1, this.view.zoom ** 0.3));
  }

  /** Faded stories as small points, and lines from a story to its nearest ones. */
  drawLines(brush, project) {
    brush.fillStyle = color("--line");
    this.faded.forEach((isFaded, place) => isFaded && drawPoint(brush, this.places[place], 2));
    brush.strokeStyle = color("--ink");
    brush.lineWidth = 1.2;
    brush.beginPath();
    for (const [point, other] of this.lines) {
      brush.moveTo(...project(point));
      brush.lineTo(...project(other));
    }
    brush.stroke();
  }

  /** Names of groups over their points, the largest first, each where it touches no other. */
  namesOver(brush, project) {
    const drawn = [];
    for (const { text, x, y } of this.labels) {
      const box = boxOf(brush, "group", text, project({ x, y }), { up: 1 }, this.canvas);
      if (this.isInSight([box.x, box.y]) && !drawn.some((other) => touch(box, other))) drawn.push(box);
    }
    return drawn;
  }

  /** Names of groups, then titles, those on the list first, each beside what it names and where it covers nothing. */
  namesAround(brush, project, inSight) {
    const drawn = [];
    const write = (kind, text, places) => {
      const edges = { left: least(places, 0), right: -least(places, 0, -1), top: least(places, 1), bottom: -least(places, 1, -1) };
      const boxes = SIDES.map(({ across, up }) => {
        const at = [[edges.left, (edges.left + edges.right) / 2, edges.right][across + 1], [edges.bottom, (edges.top + edges.bottom) / 2, edges.top][up + 1]];
        return boxOf(brush, kind, text, at, { across, up }, this.canvas);
      });
      const free = boxes.find((box) => !drawn.some((other) => touch(box, other)) && !inSight.some((point) => touchesPoint(box, point)));
      if (free) drawn.push(free);
    };
    for (const { text, members } of this.labels) {
      const places = members.map(project).filter((place) => this.isInSight(place));
      if (places.length) write("group", text, places);
    }
    if (inSight.length > TITLED) return drawn;
    const isFirst = (at) => (this.actions.isChosen(this.points[at]) ? 0 : 1);
    const order = this.points.map((_, at) => at).filter((at) => !this.faded[at] && this.isInSight(this.places[at]));
    for (const at of order.sort((one, other) => isFirst(one) - isFirst(other))) {
      const title = titleOf(this.actions.collection, this.points[at]);
      write("title", title.length > TITLE ? `${title.slice(0, TITLE - 1)}…` : title, [this.places[at]]);
    }
    return drawn;
  }

  drawNames(brush, names) {
    this.named = names;
    brush.textAlign = "center";
    brush.lineJoin = "round";
    brush.lineWidth = 4;
    brush.strokeStyle = color("--paper");
    for (const { kind, text, x, y } of names) {
      brush.font = FONTS[kind];
      brush.fillStyle = color(kind === "group" ? "--ink" : "--muted");
      brush.strokeText(text, x, y);
      brush.fillText(text, x, y);
    }
  }

  drawLasso(brush) {
    brush.beginPath();
    for (const [x, y] of this.lasso) brush.lineTo(x, y);
    brush.closePath();
    brush.strokeStyle = color("--accent");
    brush.lineWidth = 2;
    brush.setLineDash([5, 4]);
    brush.stroke();
    brush.globalAlpha = 0.12;
    brush.fillStyle = color("--accent");
    brush.fill();
    brush.globalAlpha = 1;
    brush.setLineDash([]);
  }

  /** The nearest point within reach, or undefined. */
  pointAt([x, y]) {
    let [best, least] = [undefined, REACH ** 2];
    this.places?.forEach(([px, py], place) => {
      if (this.faded[place]) return;
      const distance = (px - x) ** 2 + (py - y) ** 2;
      if (distance < least) [best, least] = [this.points[place], distance];
    });
    return best;
  }

  listen() {
    const { canvas } = this;
    const fingers = new Map();
    let from = null;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.tip.hidden = true;
      fingers.set(event.pointerId, [event.offsetX, event.offsetY]);
      from = { at: [event.offsetX, event.offsetY], view: this.view, isPinch: fingers.size > 1 };
      this.lasso = !from.isPinch && (this.lassoMode || event.shiftKey) ? [from.at] : null;
    });
    canvas.addEventListener("pointermove", (event) => {
      const at = [event.offsetX, event.offsetY];
      if (from === null) return this.point(at);
      if (fingers.size === 2) return this.pinch(fingers, event.pointerId, at);
      if (this.lasso) {
        this.lasso.push(at);
        return this.refresh();
      }
      this.view = { ...from.view, x: from.view.x + at[0] - from.at[0], y: from.view.y + at[1] - from.at[1] };
      return this.draw();
    });
    canvas.addEventListener("pointerup", (event) => {
      const at = [event.offsetX, event.offsetY];
      fingers.delete(event.pointerId);
      const { lasso } = this;
      const moved = from && !from.isPinch ? Math.hypot(at[0] - from.at[0], at[1] - from.at[1]) : Infinity;
      [from, this.lasso] = [null, null];
      if (lasso && lasso.length > 2) this.actions.add(this.points.filter((_, place) => !this.faded[place] && isInside(this.places[place], lasso)));
      else if (moved < 4) this.click(at);
      this.draw();
    });
    canvas.addEventListener("pointercancel", () => {
      fingers.clear();
      [from, this.lasso] = [null, null];
      this.draw();
    });
    canvas.addEventListener("pointerleave", () => (this.tip.hidden = true));
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoomAt(1.0015 ** -event.deltaY, [event.offsetX, event.offsetY]);
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const move = (x, y) => {
        this.view = { ...this.view, x: this.view.x + x, y: this.view.y + y };
        this.draw();
      };
      const keys = { ArrowLeft: () => move(STEP, 0), ArrowRight: () => move(-STEP, 0), ArrowUp: () => move(0, STEP), ArrowDown: () => move(0, -STEP),
        "+": () => this.zoomAt(1.4, this.middle()), "-": () => this.zoomAt(1 / 1.4, this.middle()), 0: () => this.reset() };
      if (!keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });
  }

  /** Zoom by the distance of two fingers, around the middle between them. */
  pinch(fingers, id, at) {
    const distance = () => {
      const [[x, y], [otherX, otherY]] = fingers.values();
      return Math.hypot(x - otherX, y - otherY);
    };
    const before = distance();
    fingers.set(id, at);
    const [[x, y], [otherX, otherY]] = fingers.values();
    this.zoomAt(distance() / Math.max(before, 1), [(x + otherX) / 2, (y + otherY) / 2]);
  }

  click(at) {
    const point = this.pointAt(at);
    if (point) this.actions.show(point);
  }

  /** Show the title and the beginning of the story at a place. */
  point(at) {
    const point = this.pointAt(at);
    this.readout.textContent = point ? titleOf(this.actions.collection, point) : t("map.plane_hint");
    this.canvas.classList.toggle("pointing", point !== undefined);
    this.tip.hidden = point === undefined;
    if (point === undefined) return;
    this.tip.replaceChildren(make("b", {}, titleOf(this.actions.collection, point)), make("br"), point.beginning);
    const { offsetLeft, offsetTop, clientWidth } = this.canvas;
    this.tip.style.left = `${offsetLeft + Math.max(0, Math.min(at[0] + 14, clientWidth - this.tip.offsetWidth))}px`;
    this.tip.style.top = `${offsetTop + at[1] + 18}px`;
  }

  /** The plane as a drawing of its own, as it is shown: points, names of groups, and what the colors mean. */
  svg(key) {
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    const [radius, ink, project] = [this.radius(), color("--ink"), this.projection()];
    const dots = this.places.map(([cx, cy], place) => this.isInSight([cx, cy]) && !this.faded[place]
      ? makeSvg("circle", { cx: cx.toFixed(1), cy: cy.toFixed(1), r: radius, fill: this.colors[place],
        ...(this.actions.isChosen(this.points[place]) ? { stroke: ink, "stroke-width": 2 } : {}) }) : null);
    const lines = this.lines.map(([point, other]) => [project(point), project(other)]).filter((ends) => ends.every((end) => this.isInSight(end)))
      .map(([[x1, y1], [x2, y2]]) => makeSvg("line", { x1, y1, x2, y2, stroke: ink }));
    const names = this.named.map(({ kind, text, x, y }) => makeSvg("text", { x, y, "text-anchor": "middle", class: kind,
      "font-weight": kind === "group" ? 600 : 400, "font-size": kind === "group" ? 13 : 11, fill: kind === "group" ? ink : color("--muted"), stroke: color("--paper"), "stroke-width": 4, "paint-order": "stroke", "stroke-linejoin": "round" }, text));
    const legend = keyOf(key, height + 12, width);
    return drawingOf([lines, dots.filter(Boolean), names, legend.element], width, height + 12 + legend.height);
  }
}

/** Places of points by their colors. */
function byColor(colors) {
  const places = new Map();
  colors.forEach((shade, place) => {
    if (!places.has(shade)) places.set(shade, []);
    places.get(shade).push(place);
  });
  return places;
}

function drawPoint(brush, [x, y], radius, isOutlined = false) {
  brush.beginPath();
  if (radius < ROUND) brush.rect(x - radius, y - radius, 2 * radius, 2 * radius);
  else brush.arc(x, y, radius, 0, 2 * Math.PI);
  brush.fill();
  if (isOutlined) brush.stroke();
}

function boundsOf(points) {
  const range = (values) => values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
  const [left, right] = range(points.map((point) => point.x));
  const [bottom, top] = range(points.map((point) => point.y));
  return { left, bottom, width: Math.max(right - left, 1e-9), height: Math.max(top - bottom, 1e-9) };
}

/** Sides on which a name may stand, the best first: left or right (across -1 or 1), below or above (up -1 or 1). */
const SIDES = [
  { across: 1, up: 0 }, { across: 0, up: 1 }, { across: 0, up: -1 }, { across: -1, up: 0 },
  { across: 1, up: 1 }, { across: 1, up: -1 }, { across: -1, up: 1 }, { across: -1, up: -1 },
];

/** The box of a name beside a place, inside the canvas: middle and foot of its line, and half of its width. */
function boxOf(brush, kind, text, [x, y], { across = 0, up = 0 }, { clientWidth, clientHeight }) {
  brush.font = FONTS[kind];
  const half = brush.measureText(text).width / 2 + 2;
  const middle = x + across * (half + GAP);
  const foot = y + LINE / 3 - up * (across === 0 ? GAP + LINE / 3 : LINE / 2);
  return { kind, text, half, x: Math.max(half, Math.min(clientWidth - half, middle)), y: Math.max(LINE, Math.min(clientHeight - 4, foot)) };
}

/** The least coordinate of places; with the sign -1, the largest one, with a minus. */
const least = (places, axis, sign = 1) => places.reduce((low, place) => Math.min(low, sign * place[axis]), Infinity);

/** Do the boxes of two names touch? */
function touch(box, other) {
  return Math.abs(other.x - box.x) < other.half + box.half && Math.abs(other.y - box.y) < LINE;
}

/** Does the box of a name touch a point? */
function touchesPoint(box, [x, y]) {
  return Math.abs(x - box.x) < box.half + 6 && y > box.y - LINE - 3 && y < box.y + 9;
}

/** Names of groups at the medians of their stories, the largest group first. */
function labelsOf(points, groups) {
  const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
  const labels = groups.map((group) => {
    const members = points.filter((point) => point.group === group.number);
    return { text: group.label, members, x: median(members.map((point) => point.x)), y: median(members.map((point) => point.y)) };
  });
  return labels.filter((label) => label.members.length > 0).sort((a, b) => b.members.length - a.members.length);
}

/** Is a place inside a polygon? An edge crossed an odd number of times to the right says so. */
function isInside([x, y], polygon) {
  let inside = false;
  polygon.forEach(([x1, y1], place) => {
    const [x2, y2] = polygon.at(place - 1);
    if (y1 > y !== y2 > y && x < ((x2 - x1) * (y - y1)) / (y2 - y1) + x1) inside = !inside;
  });
  return inside;
}
