// The picture: the two drawings, and what lies on top of them.

import { drawParts } from "/static/page.js";

const SVG = "http://www.w3.org/2000/svg";
const MOVING = /^(street|site|people|player)-/;  // parts of which it shows when they change
const still = matchMedia("(prefers-reduced-motion: reduce)");
const drawings = {};  // by name ("city", "panels"), the svg element
let shown = {};  // by part, its text on the page

/** An SVG element with attributes, in a parent. */
export function draw(kind, attributes, parent) {
  const made = document.createElementNS(SVG, kind);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  parent?.append(made);
  return made;
}

/** Begin the drawings anew. boxes: by name, x, y, width, height; names: of all parts, in order. */
export function beginPicture(boxes, names, panelsFrom) {
  shown = {};
  for (const [name, box] of Object.entries(boxes)) {
    const words = name === "city" ? "The city" : "Clock, actions, players";
    const svg = draw("svg", { viewBox: box.join(" "), class: "bus", role: "group" });
    svg.setAttribute("aria-label", words);
    document.getElementById(name).replaceChildren(svg);
    drawings[name] = svg;
  }
  const middle = names.indexOf(panelsFrom);
  names.forEach((name, k) =>
    draw("g", { "data-part": name }, drawings[k < middle ? "city" : "panels"]));
  for (const svg of Object.values(drawings)) {
    const above = draw("g", { class: "above" }, svg);
    for (const layer of ["ghosts", "spots", "marks"]) draw("g", { class: layer }, above);
  }
}

/** Show a position. moved: somebody else has decided, so that what changed is to be noticed. */
export function showParts(parts, moved) {
  const changed = Object.entries(parts).filter(([name, text]) => shown[name] !== text);
  drawParts(Object.fromEntries(changed));
  shown = { ...shown, ...parts };
  if (!moved || still.matches) return;
  for (const [name] of changed) if (MOVING.test(name)) flash(name);
}

function flash(name) {
  document.querySelector(`[data-part="${name}"]`)
    .animate([{ opacity: 0.15 }, { opacity: 1 }], { duration: 350, easing: "ease-out" });
}

/** A layer over a drawing: "marks" of an agent's favourites, "ghosts" of a choice, "spots". */
export function layer(drawing, name) { return drawings[drawing].querySelector(`.${name}`); }

export function emptyLayer(name) {
  for (const drawing of Object.keys(drawings)) layer(drawing, name).replaceChildren();
}

/** Give layers a seat's colour. Set here, and not on all the page: each element that would inherit
 * it is styled anew, and the drawings have thousands. */
export function colourLayers(names, seat) {
  for (const drawing of Object.keys(drawings))
    for (const name of names) layer(drawing, name).style.setProperty("--seat", `var(--seat-${seat})`);
}

export function drawingOf(name) { return drawings[name]; }

/** Draw a shape of the protocol; a line as an arrow if it has a direction. */
export function drawShape(shape, parent, directed = true) {
  if (shape.kind === "circle")
    return draw("circle", { cx: shape.x, cy: shape.y, r: shape.r }, parent);
  if (shape.kind === "rect") {
    const { x, y, width, height } = shape;
    return draw("rect", { x, y, width, height, rx: 7 }, parent);
  }
  return drawWay(shape, parent, directed);
}

function drawWay({ x1, y1, x2, y2 }, parent, directed) {
  const length = Math.hypot(x2 - x1, y2 - y1), ux = (x2 - x1) / length, uy = (y2 - y1) / length;
  const from = Math.min(26, length / 4), to = length - from, neck = to - 15;
  const path = (points) => `M${points.map(([along, side]) =>
    `${(x1 + along * ux - side * uy).toFixed(1)} ${(y1 + along * uy + side * ux).toFixed(1)}`).join("L")}`;
  if (!directed) return draw("path", { class: "way", d: path([[from, 0], [to, 0]]) }, parent);
  const arrow = [[from, -3], [neck, -3], [neck, -10], [to, 0], [neck, 10], [neck, 3], [from, 3]];
  return draw("path", { class: "way arrow", d: `${path(arrow)}Z` }, parent);
}

/** How far a point is from a shape, in units of the drawing; 0 within. */
export function distanceTo(shape, { x, y }) {
  if (shape.kind === "circle") return Math.max(0, Math.hypot(x - shape.x, y - shape.y) - shape.r);
  if (shape.kind === "rect") {
    const dx = Math.max(shape.x - x, 0, x - shape.x - shape.width);
    const dy = Math.max(shape.y - y, 0, y - shape.y - shape.height);
    return Math.hypot(dx, dy);
  }
  const wx = shape.x2 - shape.x1, wy = shape.y2 - shape.y1;
  const along = ((x - shape.x1) * wx + (y - shape.y1) * wy) / (wx * wx + wy * wy);
  const t = Math.min(Math.max(along, 0.1), 0.9);
  return Math.max(0, Math.hypot(x - shape.x1 - t * wx, y - shape.y1 - t * wy) - 10);
}

/** The middle of a shape, in units of the drawing. */
export function middleOf(shape) {
  if (shape.kind === "circle") return { x: shape.x, y: shape.y };
  if (shape.kind === "rect") return { x: shape.x + shape.width / 2, y: shape.y + shape.height / 2 };
  return { x: (shape.x1 + shape.x2) / 2, y: (shape.y1 + shape.y2) / 2 };
}

/** Where an event of the pointer is, in units of a drawing. */
export function pointIn(drawing, event) {
  const there = new DOMPoint(event.clientX, event.clientY);
  return there.matrixTransform(drawings[drawing].getScreenCTM().inverse());
}

/** Where a point of a drawing is on the screen; scale: pixels a unit. */
export function onScreen(drawing, { x, y }) {
  const matrix = drawings[drawing].getScreenCTM();
  const there = new DOMPoint(x, y).matrixTransform(matrix);
  return { x: there.x, y: there.y, scale: matrix.a };
}
