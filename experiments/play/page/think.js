// What agents make of it: a hint, an analysis that runs along, the chances over the game.

import { element, moveCursors, percent, plyAt, seatBadge, showChances, showFavourites }
  from "/static/page.js";
import { draw, drawShape, emptyLayer, layer, middleOf } from "./picture.js";

const LEAST_SHARE = 0.005, LEAST_MARKED = 0.02;
const chart = document.getElementById("chart"), lost = document.getElementById("lost");
let course = null;  // the last message on the chances over the game

/** Mark favourites on the picture: where they are and what share they have. */
export function markFavourites(favourites) {
  emptyLayer("marks");
  const places = new Map();  // what stands at one place is marked once
  for (const { in: drawing, shapes, share } of favourites) {
    if (!drawing) continue;
    const key = drawing + JSON.stringify(shapes), before = places.get(key)?.share ?? 0;
    places.set(key, { drawing, shapes, share: before + share });
  }
  for (const place of places.values()) if (place.share >= LEAST_MARKED) drawMark(place);
}

function drawMark({ drawing, shapes, share }) {
  const group = draw("g", { class: "mark" }, layer(drawing, "marks"));
  const circles = shapes.filter(({ kind }) => kind === "circle");
  const drawn = circles.length ? circles : shapes;  // of a row of the action board, its space
  for (const shape of drawn) drawShape(shape, group);
  group.style.strokeWidth = 2 + 4 * share;
  group.style.opacity = 0.6 + 0.4 * share;
  const { x, y } = besides(drawing, drawn[0]);
  draw("rect", { class: "tag", x: x - 19, y: y - 11, width: 38, height: 22, rx: 11 }, group);
  draw("text", { x, y: y + 5, "font-size": 15, "text-anchor": "middle" }, group)
    .textContent = percent(share);
}

/** Where the share of what is marked stands: in the city where it hides nothing of it. */
function besides(drawing, shape) {
  const { x, y } = middleOf(shape);
  if (drawing !== "city") return { x, y };
  if (shape.kind === "circle") return { x: x + 0.7 * shape.r + 10, y: y - 0.7 * shape.r - 10 };
  const dx = shape.x2 - shape.x1, dy = shape.y2 - shape.y1, away = 26 / Math.hypot(dx, dy);
  return { x: x - away * dy, y: y + away * dx };
}

export function unmarkFavourites() { emptyLayer("marks"); }

/** The panel of the analysis. */
export function showAnalysis({ chances, favourites, simulations, running }) {
  showChances(chances);
  const effort = simulations === null || simulations === undefined ? ""
    : `, ${simulations.toLocaleString("en")} simulations${running ? "…" : ""}`;
  document.getElementById("effort").textContent = `Chance to win${effort}`;
  const best = favourites.filter(({ share }) => share >= LEAST_SHARE);
  showFavourites(best.map(({ words, share }) => [element("span", words), share]));
  markFavourites(favourites);
}

/** The panel of the analysis before anything is known of the position. */
export function emptyAnalysis(words) {
  document.getElementById("effort").textContent = words;
  document.getElementById("chances").replaceChildren();
  document.getElementById("favourites").replaceChildren();
  unmarkFavourites();
}

/** The chances over the game. show(node): called for a decision that is clicked. */
export function showCourse(message, show) {
  course = message;
  if (message.svg) chart.innerHTML = message.svg;
  else chart.replaceChildren(element("p", "Working it out…", "help"));
  const drawn = chart.querySelector(".chart");
  if (drawn) {
    drawn.onclick = (event) => {
      const last = message.line.length - 1;
      show(message.line[Math.min(Math.max(plyAt(drawn, event, last), 0), last)]);
    };
    message.lost.forEach((loss) => markLoss(drawn, loss));
  }
  const rows = message.lost.map((loss) => lossButton(loss, message.line.indexOf(loss.node), show));
  if (rows.length) rows.unshift(element("h3", "Decisions that lost most"));
  lost.replaceChildren(...rows);
}

export function forgetCourse() {
  course = null;
  chart.replaceChildren();
  lost.replaceChildren();
}

/** Show on the chart which node is on the picture. */
export function pointOutOnCourse(node) {
  const at = course?.line.indexOf(node) ?? -1;
  if (at >= 0) moveCursors(at, course.line.length - 1);
}

function markLoss(drawn, { node, seat }) {
  const { left, right, top, bottom } = drawn.dataset, at = course.line.indexOf(node);
  const chance = (course.chances[at] ?? course.chances[at - 1])?.[seat];
  if (at < 0 || chance === undefined) return;
  const x = +left + (right - left) * at / Math.max(course.line.length - 1, 1);
  draw("circle", { class: "loss", cx: x, cy: bottom - (bottom - top) * chance, r: 6 }, drawn);
}

function lossButton({ node, seat, lost: share, words, better }, ply, show) {
  const button = element("button", "", "loss");
  button.append(seatBadge(seat), ` −${percent(share)} at ${ply}: ${words}`);
  if (better) button.append(element("small", `better: ${better}`));
  button.onclick = () => show(node);
  return button;
}
