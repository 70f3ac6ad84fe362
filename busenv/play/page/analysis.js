// Agents' estimates: best moves on the drawing, the analysis panel, the chart of a game.

import { element, moveCursors, percent, plyAt, seatBadge, showBestMoves, showChances }
  from "/static/page.js";
import { centre, clearLayer, createShape, createSvg, layer } from "./drawing.js";

const MIN_SHARE = 0.02;  // of a best move that is marked
const $ = (id) => document.getElementById(id);
let latest = null;  // the latest message

/** Mark best moves with their shares on the drawing. */
export function markBestMoves(bestMoves) {
  clearMarks();
  const marks = new Map();  // moves at the same place share a mark
  for (const { in: drawing, shapes, counts, share } of bestMoves) {
    if (counts.length) return markPassengers(bestMoves[0]);  // the others are at the same stations
    const key = drawing + JSON.stringify(shapes), before = marks.get(key)?.share ?? 0;
    marks.set(key, { drawing, shapes, share: before + share });
  }
  for (const mark of marks.values()) if (mark.share >= MIN_SHARE) createMark(mark);
}

function createMark({ drawing, shapes, share }) {
  const group = createSvg("g", { class: "mark" }, layer(drawing, "marks"));
  const circles = shapes.filter(({ kind }) => kind === "circle");
  const marked = circles.length ? circles : shapes;  // for an action: its space, not its row
  for (const shape of marked) createShape(shape, group);
  group.style.strokeWidth = 2 + 4 * share;
  group.style.opacity = 0.6 + 0.4 * share;
  createTag(tagPosition(drawing, marked[0]), percent(share), group);
}

/** Mark the stations at which passengers arrive, with their numbers. */
function markPassengers({ shapes, counts }) {
  const group = createSvg("g", { class: "mark" }, layer("city", "marks"));
  group.style.strokeWidth = 5;
  shapes.forEach((shape, k) => {
    if (!counts[k]) return;
    createShape(shape, group);
    createTag(tagPosition("city", shape), `+${counts[k]}`, group);
  });
}

function createTag({ x, y }, text, group) {
  createSvg("rect", { class: "tag", x: x - 23, y: y - 11, width: 46, height: 22, rx: 11 }, group);
  createSvg("text", { x, y: y + 5, "font-size": 15, "text-anchor": "middle" }, group)
    .textContent = text;
}

/** The position of a mark's tag: in the city next to the shape, so that the shape stays visible. */
function tagPosition(drawing, shape) {
  const { x, y } = centre(shape);
  if (drawing !== "city") return { x, y };
  if (shape.kind === "circle") return { x: x + 0.7 * shape.r + 10, y: y - 0.7 * shape.r - 10 };
  const dx = shape.x2 - shape.x1, dy = shape.y2 - shape.y1, offset = 26 / Math.hypot(dx, dy);
  return { x: x - offset * dy, y: y + offset * dx };
}

export function clearMarks() { clearLayer("marks"); }

export function showAnalysis({ chances, best_moves: bestMoves, simulations, running }) {
  showChances(chances);
  $("effort").textContent = "Chance to win, "
    + `${simulations.toLocaleString("en")} simulations${running ? "…" : ""}`;
  showBestMoves(bestMoves.map(({ text, share }) => [element("span", text), share]));
  markBestMoves(bestMoves);
}

/** Empty the analysis panel; text: its title. */
export function clearAnalysis(text) {
  $("effort").textContent = text;
  $("chances").replaceChildren();
  $("best-moves").replaceChildren();
  clearMarks();
}

/** Show the chart. yours: seats whose mistakes come first. viewNode(node): called for a click on
 * the chart or on a mistake. */
export function showChart(message, yours, viewNode) {
  latest = message;
  const { variation, mistakes, svg, agent } = latest, last = variation.length - 1;
  if (svg) $("curves").innerHTML = svg;
  else $("curves").replaceChildren(element("p", "Searching…", "help"));
  const chart = $("curves").querySelector(".chart");
  if (chart) {
    chart.onclick = (event) =>
      viewNode(variation[Math.min(Math.max(plyAt(chart, event, last), 0), last)]);
    for (const mistake of mistakes) markMistake(chart, mistake);
  }
  const isYours = ({ seat }) => yours.includes(seat);
  const others = yours.length ? "Costliest decisions of the others" : "Costliest decisions";
  $("mistakes").replaceChildren(element("p", `Estimated by ${agent}.`, "help"),
    ...mistakeList("Your costliest decisions", mistakes.filter(isYours), viewNode),
    ...mistakeList(others, mistakes.filter((one) => !isYours(one)), viewNode));
}

export function clearChart() {
  latest = null;
  $("curves").replaceChildren();
  $("mistakes").replaceChildren();
}

/** Move the chart's cursor to a node. */
export function showNodeOnChart(node) {
  const ply = latest?.variation.indexOf(node) ?? -1;
  if (ply >= 0) moveCursors(ply, latest.variation.length - 1);
}

function markMistake(chart, { node, seat }) {
  const { left, right, top, bottom } = chart.dataset, ply = latest.variation.indexOf(node);
  const x = +left + (right - left) * ply / Math.max(latest.variation.length - 1, 1);
  const y = bottom - (bottom - top) * latest.chances[ply][seat];
  createSvg("circle", { class: "mistake", cx: x, cy: y, r: 6 }, chart);
}

function mistakeList(title, mistakes, viewNode) {
  if (!mistakes.length) return [];
  return [element("h3", title), ...mistakes.map((mistake) => mistakeButton(mistake, viewNode))];
}

function mistakeButton({ node, seat, before, after, text, better }, viewNode) {
  const button = element("button"), ply = latest.variation.indexOf(node);
  button.append(seatBadge(seat), ` Move ${ply}: ${text}`);
  const cost = `cost ${percent(before - after)} (${percent(before)} → ${percent(after)})`;
  button.append(element("small", `${cost}. Better: ${better}`));
  button.onclick = () => viewNode(node);
  return button;
}
