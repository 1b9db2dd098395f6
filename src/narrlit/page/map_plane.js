// Stories as points of a plane on a canvas: move, zoom, click and lasso.

import { color, make } from "./dom.js";
import { titleOf } from "./labels.js";
import { button } from "./parts.js";
import { t } from "./texts.js";

/** Pixels from a point within which a click finds it. */
const REACH = 18;
/** Pixels that stay free around all points at first. */
const MARGIN = 36;
/** Radius from which a point is drawn as a circle; smaller ones are squares, which are drawn faster. */
const ROUND = 3;
/** Points from which names of groups are written over them; of fewer, none may be hidden by a name. */
const CROWDED = 500;
/** Where the name of a group stands: halves of its width and pixels from the middle of the group, the best place first. */
const ABOVE = { halves: 0, right: 0, down: -12 };
const AROUND = [
  ABOVE,
  { halves: 0, right: 0, down: 22 },
  { halves: 1, right: 8, down: 5 },
  { halves: -1, right: -8, down: 5 },
  { halves: 0, right: 0, down: -32 },
  { halves: 0, right: 0, down: 42 },
];
/** Least and largest magnification. */
const ZOOM = [0.5, 60];

/** Draw a map as a plane. Returns its element, recolor(colors) and mark(), which follows the list of stories. */
export function planeOf(map, actions) {
  const plane = new Plane(map, actions);
  return { element: plane.element, recolor: (colors) => plane.recolor(colors), mark: () => plane.draw() };
}

class Plane {
  constructor({ points, groups }, actions) {
    this.points = points;
    this.actions = actions;
    this.labels = labelsOf(points, groups);
    this.colors = points.map(() => "gray");
    this.view = { zoom: 1, x: 0, y: 0 };
    this.lasso = null;
    this.canvas = make("canvas", { role: "img", "aria-label": t("map.plane_label") });
    this.readout = make("p", { class: "readout", "aria-live": "off" }, t("map.plane_hint"));
    this.mode = button(t("map.lasso"), () => this.setLassoMode(!this.lassoMode), { "aria-pressed": "false", id: "lasso" });
    const controls = make("p", { class: "actions" },
      this.mode,
      button("+", () => this.zoomAt(1.4), { "aria-label": t("map.zoom_in") }),
      button("−", () => this.zoomAt(1 / 1.4), { "aria-label": t("map.zoom_out") }),
      button(t("map.all"), () => this.reset()));
    this.element = make("div", { class: "plane" }, controls, this.canvas, this.readout);
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

  zoomAt(factor, at = [this.canvas.clientWidth / 2, this.canvas.clientHeight / 2]) {
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
      if (this.isStale) this.drawPoints();
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
    const isCrowded = this.points.length > CROWDED;
    if (!isCrowded) this.drawLabels(brush, project, AROUND, this.places);
    const largest = Math.max(2, Math.min(7, 90 / Math.sqrt(this.points.length)));
    const radius = largest * Math.min(1.6, Math.max(1, this.view.zoom ** 0.3));
    const chosen = [];
    for (const [shade, places] of byColor(this.colors)) {
      brush.fillStyle = shade;
      for (const place of places) {
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
    if (isCrowded) this.drawLabels(brush, project, [ABOVE], []);
  }

  /** Names of groups, the largest first, each where it touches no other and the fewest points. */
  drawLabels(brush, project, positions, points) {
    const width = this.canvas.clientWidth;
    brush.font = "600 13px system-ui, sans-serif";
    brush.textAlign = "center";
    brush.lineJoin = "round";
    brush.lineWidth = 4;
    brush.strokeStyle = color("--paper");
    brush.fillStyle = color("--ink");
    const drawn = [];
    for (const label of this.labels) {
      const half = brush.measureText(label.text).width / 2 + 4;
      const [across, down] = project(label);
      if (across < 0 || across > width) continue;
      const boxes = positions.map((position) => {
        const x = across + position.halves * half + position.right;
        return { x: Math.max(half, Math.min(width - half, x)), y: down + position.down, half };
      });
      const best = leastCovering(boxes.filter((box) => !drawn.some((other) => touch(box, other))), points);
      if (best === undefined) continue;
      drawn.push(best);
      brush.strokeText(label.text, best.x, best.y);
      brush.fillText(label.text, best.x, best.y);
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
      const distance = (px - x) ** 2 + (py - y) ** 2;
      if (distance < least) [best, least] = [this.points[place], distance];
    });
    return best;
  }

  listen() {
    const { canvas } = this;
    let from = null;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      from = { at: [event.offsetX, event.offsetY], view: this.view };
      if (this.lassoMode || event.shiftKey) this.lasso = [from.at];
    });
    canvas.addEventListener("pointermove", (event) => {
      const at = [event.offsetX, event.offsetY];
      if (from === null) return this.point(at);
      if (this.lasso) {
        this.lasso.push(at);
        return this.refresh();
      }
      this.view = { ...from.view, x: from.view.x + at[0] - from.at[0], y: from.view.y + at[1] - from.at[1] };
      return this.draw();
    });
    canvas.addEventListener("pointerup", (event) => {
      const at = [event.offsetX, event.offsetY];
      const { lasso } = this;
      const moved = from ? Math.hypot(at[0] - from.at[0], at[1] - from.at[1]) : 0;
      [from, this.lasso] = [null, null];
      if (lasso && lasso.length > 2) this.actions.add(this.points.filter((_, place) => isInside(this.places[place], lasso)));
      else if (moved < 4) this.click(at);
      this.draw();
    });
    canvas.addEventListener("pointercancel", () => {
      [from, this.lasso] = [null, null];
      this.draw();
    });
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoomAt(1.0015 ** -event.deltaY, [event.offsetX, event.offsetY]);
    }, { passive: false });
  }

  click(at) {
    const point = this.pointAt(at);
    if (point) this.actions.toggle(point);
  }

  point(at) {
    const point = this.pointAt(at);
    this.readout.textContent = point ? titleOf(this.actions.collection, point) : t("map.plane_hint");
    this.canvas.classList.toggle("pointing", point !== undefined);
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

/** Do the boxes of two names touch? */
function touch(box, other) {
  return Math.abs(other.x - box.x) < other.half + box.half && Math.abs(other.y - box.y) < 20;
}

/** The first of the boxes that touch the fewest points; undefined without boxes. */
function leastCovering(boxes, points) {
  const counts = boxes.map((box) => points.filter((point) => touchesPoint(box, point)).length);
  return boxes[counts.indexOf(Math.min(...counts))];
}

/** Does the box of a name touch a point? */
function touchesPoint(box, [x, y]) {
  return Math.abs(x - box.x) < box.half + 5 && y > box.y - 18 && y < box.y + 9;
}

/** Names of groups at the medians of their stories, the largest group first. */
function labelsOf(points, groups) {
  const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
  const labels = groups.map((group) => {
    const members = points.filter((point) => point.group === group.number);
    return { text: group.label, count: members.length, x: median(members.map((point) => point.x)), y: median(members.map((point) => point.y)) };
  });
  return labels.filter((label) => label.count > 0).sort((a, b) => b.count - a.count);
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
