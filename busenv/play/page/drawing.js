// The two SVG drawings, "city" and "panels", and the layers above them.

import { drawParts } from "/static/page.js";

const SVG = "http://www.w3.org/2000/svg";
const LAYERS = ["ghosts", "targets", "marks", "gains"];
const FLASHING = /^(street|site|people|player)-/;  // parts whose changes are animated
const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
const drawings = {};  // svg elements by name
let parts = {};  // SVG text on the page by name of the part

/** Create an SVG element and append it to a parent. */
export function createSvg(kind, attributes, parent) {
  const created = document.createElementNS(SVG, kind);
  for (const [name, value] of Object.entries(attributes)) created.setAttribute(name, value);
  parent?.append(created);
  return created;
}

/** Create the empty drawings. view_boxes: by drawing; panels_from: the first part of the panels;
 * names: of the parts, in order. */
export function initDrawing({ view_boxes: boxes, panels_from: panelsFrom }, names) {
  parts = {};
  for (const [name, box] of Object.entries(boxes)) {
    const svg = createSvg("svg", { viewBox: box.join(" "), class: "bus", role: "group" });
    svg.setAttribute("aria-label", name === "city" ? "The city" : "Clock, actions, players");
    document.getElementById(name).replaceChildren(svg);
    drawings[name] = svg;
  }
  const first = names.indexOf(panelsFrom);
  names.forEach((name, k) =>
    createSvg("g", { "data-part": name }, drawings[k < first ? "city" : "panels"]));
  for (const svg of Object.values(drawings)) {
    const above = createSvg("g", { class: "above" }, svg);
    for (const name of LAYERS) createSvg("g", { class: name }, above);
  }
}

/** Show a position. animate: whether changed parts flash, after another player's decision. */
export function showParts(newParts, animate) {
  const changed = Object.entries(newParts).filter(([name, text]) => parts[name] !== text);
  drawParts(Object.fromEntries(changed));
  parts = { ...parts, ...newParts };
  if (!animate || reducedMotion.matches) return;
  for (const [name] of changed.filter(([name]) => FLASHING.test(name)))
    document.querySelector(`[data-part="${name}"]`)
      .animate([{ opacity: 0.15 }, { opacity: 1 }], { duration: 350, easing: "ease-out" });
}

/** Show that a passenger has been delivered at a point of the map; without a point: none. */
export function showDelivery(point) {
  clearLayer("gains");
  if (!point) return;
  const [x, y] = point;
  const gain = createSvg("text", { class: "gain", x: x + 18, y: y - 18, "font-size": 34 },
    layer("city", "gains"));
  gain.textContent = "+1";
  if (!reducedMotion.matches)
    gain.animate([{ opacity: 0, translate: "0 18px" }, { opacity: 1, translate: "0 0" }], 400);
}

/** A layer above a drawing: "marks" (best moves), "ghosts" (a choice's result), "targets". */
export function layer(drawing, name) { return drawings[drawing].querySelector(`.${name}`); }

export function clearLayer(name) {
  for (const drawing of Object.keys(drawings)) layer(drawing, name).replaceChildren();
}

/** Set the seat's colour on layers. On a common ancestor it would restyle thousands of elements. */
export function colourLayers(names, seat) {
  for (const drawing of Object.keys(drawings))
    for (const name of names) layer(drawing, name).style.setProperty("--seat", `var(--seat-${seat})`);
}

export function getDrawing(name) { return drawings[name]; }

/** Create the SVG element of a shape from the server. directed: draw lines as arrows. */
export function createShape(shape, parent, directed = true) {
  if (shape.kind === "circle")
    return createSvg("circle", { cx: shape.x, cy: shape.y, r: shape.r }, parent);
  if (shape.kind === "rect") {
    const { x, y, width, height } = shape;
    return createSvg("rect", { x, y, width, height, rx: 7 }, parent);
  }
  return createStreet(shape, parent, directed);
}

function createStreet({ x1, y1, x2, y2 }, parent, directed) {
  const length = Math.hypot(x2 - x1, y2 - y1), ux = (x2 - x1) / length, uy = (y2 - y1) / length;
  const start = Math.min(26, length / 4), end = length - start, neck = end - 15;
  const path = (points) => `M${points.map(([along, side]) =>
    `${(x1 + along * ux - side * uy).toFixed(1)} ${(y1 + along * uy + side * ux).toFixed(1)}`).join("L")}`;
  if (!directed) return createSvg("path", { class: "arrow-shape", d: path([[start, 0], [end, 0]]) }, parent);
  const arrow = [[start, -3], [neck, -3], [neck, -10], [end, 0], [neck, 10], [neck, 3], [start, 3]];
  return createSvg("path", { class: "arrow-shape arrow", d: `${path(arrow)}Z` }, parent);
}

/** The distance of a point from a shape in units of the drawing; 0 inside. */
export function distanceTo(shape, { x, y }) {
  if (shape.kind === "circle") return Math.max(0, Math.hypot(x - shape.x, y - shape.y) - shape.r);
  if (shape.kind === "rect") {
    const dx = Math.max(shape.x - x, 0, x - shape.x - shape.width);
    const dy = Math.max(shape.y - y, 0, y - shape.y - shape.height);
    return Math.hypot(dx, dy);
  }
  const dx = shape.x2 - shape.x1, dy = shape.y2 - shape.y1;
  const along = ((x - shape.x1) * dx + (y - shape.y1) * dy) / (dx * dx + dy * dy);
  const t = Math.min(Math.max(along, 0.1), 0.9);
  return Math.max(0, Math.hypot(x - shape.x1 - t * dx, y - shape.y1 - t * dy) - 10);
}

/** The centre of a shape in units of the drawing. */
export function centre(shape) {
  if (shape.kind === "circle") return { x: shape.x, y: shape.y };
  if (shape.kind === "rect") return { x: shape.x + shape.width / 2, y: shape.y + shape.height / 2 };
  return { x: (shape.x1 + shape.x2) / 2, y: (shape.y1 + shape.y2) / 2 };
}

/** The position of a pointer event in units of a drawing. */
export function toDrawing(name, event) {
  const point = new DOMPoint(event.clientX, event.clientY);
  return point.matrixTransform(drawings[name].getScreenCTM().inverse());
}

/** The position of a drawing's point on the screen; scale: pixels per unit. */
export function toScreen(name, { x, y }) {
  const matrix = drawings[name].getScreenCTM();
  const point = new DOMPoint(x, y).matrixTransform(matrix);
  return { x: point.x, y: point.y, scale: matrix.a };
}
