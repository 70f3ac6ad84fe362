// The legal choices: markers on the drawing, a card that describes them, and how to pick one.
//
// Hovering or focusing a marker describes its choice. A click picks a single choice, or opens the
// card with several. A tap always opens the card.

import { element } from "/static/page.js";
import { centre, clearLayer, colourLayers, createShape, createSvg, distanceTo, getDrawing, layer,
  toDrawing, toScreen } from "./drawing.js";

const REACH = { mouse: 14, pen: 20, touch: 30 };  // pixels from a shape at which a pointer hits it
const PANELS_TOP = 60;  // of the clock and the action board, in units of the drawing
const MARGIN = 24;  // pixels between a target and the edge of the visible area
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

const card = document.getElementById("card");
let buildingSvgs, onPick;  // SVG text by building type; called with the picked action
let withNames;  // puts the players' names in a text
let targets = [], markers = new Map();  // the server's targets; their elements on the drawing by id
let drawArrows = true;
let activeTarget = null, cardOpen = false, usesKeyboard = false, pointerType = "mouse";

export function initChoices(buildings, pick, nameSeats) {
  [buildingSvgs, onPick, withNames] = [buildings, pick, nameSeats];
  for (const name of ["city", "panels"]) {
    const svg = getDrawing(name);
    svg.addEventListener("pointerdown", (event) => {
      pointerType = event.pointerType;
      usesKeyboard = false;
    });
    svg.addEventListener("pointermove", (event) => {
      if (event.pointerType !== "touch" && !cardOpen) activate(targetAt(name, event));
    });
    svg.addEventListener("pointerleave", () => { if (!cardOpen && !usesKeyboard) activate(null); });
    svg.addEventListener("click", (event) => {
      if (event.detail === 0) return;  // from the keyboard: see handleChoiceKey
      const target = targetAt(name, event);
      if (target) press(target, pointerType === "touch");
      else activate(null);
    });
  }
}

/** Replace the choices. seat: whose colour they have. directed: draw streets as arrows. */
export function showChoices(newTargets, seat = 0, directed = true) {
  const hadFocus = document.activeElement?.closest(".target, #card");
  targets = newTargets;
  drawArrows = directed;
  activate(null);
  clearLayer("targets");
  colourLayers(["targets", "ghosts"], seat);
  markers = new Map(targets.map((target) => [target.id, createMarker(target)]));
  if (!targets.length) return;
  const isFree = document.activeElement === document.body;  // the focus is in no other control
  if (hadFocus || (usesKeyboard && isFree)) focusChoices();
  else setTimeout(scrollToTargets);  // measuring takes time: the drawing is painted first
}

/** Focus the first choice. */
export function focusChoices() {
  usesKeyboard = true;
  markers.values().next().value?.focus();
}

function createMarker(target) {
  const text = target.choices.length === 1 ? describe(target.choices[0])
    : `${target.label}: ${target.choices.map((choice) => choice.short).join(", ")}`;
  const marker = createSvg("g", { class: `target ${target.id.split("-")[0]}`, tabindex: 0,
    role: "button", "data-target": target.id, "aria-label": text }, layer(target.in, "targets"));
  for (const shape of target.shapes) {
    createShape(shape, marker, drawArrows);
    if (shape.kind === "line" && drawArrows && target.choices.length > 1)
      createShape({ ...shape, x1: shape.x2, y1: shape.y2, x2: shape.x1, y2: shape.y1 }, marker);
  }
  if (target.id === "pass") createLabel(marker, centre(target.shapes[0]), "Pass");
  marker.addEventListener("focus", () => { if (!cardOpen) activate(target); });
  marker.addEventListener("blur", () => { if (!cardOpen && usesKeyboard) activate(null); });
  return marker;
}

function createLabel(parent, { x, y }, text) {
  createSvg("text", { x, y: y + 6, "font-size": 18, "text-anchor": "middle" }, parent)
    .textContent = text;
}

function describe(choice) {
  return choice.note ? `${choice.words}: ${withNames(choice.note)}` : choice.words;
}

function capitalise(text) { return text.charAt(0).toUpperCase() + text.slice(1); }

/** The target at the pointer: the nearest within reach, and of several the one with the nearest
 * centre. */
function targetAt(drawing, event) {
  const point = toDrawing(drawing, event), { scale } = toScreen(drawing, point);
  const reach = (REACH[event.pointerType] ?? REACH.mouse) / scale;
  const toCentre = (shape) => Math.hypot(centre(shape).x - point.x, centre(shape).y - point.y);
  const [nearest] = targets.filter((target) => target.in === drawing)
    .map((target) => ({ target,
      distance: Math.min(...target.shapes.map((shape) => distanceTo(shape, point))),
      fromCentre: Math.min(...target.shapes.map(toCentre)) }))
    .filter(({ distance }) => distance < reach)
    .sort((a, b) => a.distance - b.distance || a.fromCentre - b.fromCentre);
  return nearest?.target ?? null;
}

/** Highlight and describe a target; null: none. */
function activate(target) {
  if (target === activeTarget && !cardOpen) return;
  markers.get(activeTarget?.id)?.classList.remove("on");
  [activeTarget, cardOpen] = [target, false];
  clearLayer("ghosts");
  card.hidden = !target;
  if (!target) return;
  markers.get(target.id)?.classList.add("on");
  const [choice, ...others] = target.choices;
  const verb = pointerType === "touch" ? "tap" : "click";
  card.className = "";
  card.replaceChildren(element("p", capitalise(
    others.length ? `${target.label}: ${verb} to choose` : describe(choice))));
  if (!others.length) showGhost(target, choice);
  placeCard(target);
}

/** React to a click, a tap or Enter. confirm: whether a single choice needs a second tap. */
function press(target, confirm) {
  const open = cardOpen && activeTarget === target;
  if (target.choices.length === 1 && (!confirm || open)) return onPick(target.choices[0].action);
  if (open) return;
  activate(target);
  openCard(target);
}

function openCard(target) {
  cardOpen = true;
  card.className = "open";
  const single = target.choices.length === 1;
  const text = element("p", capitalise(single ? describe(target.choices[0]) : target.label));
  const row = element("div", "", "choices"), close = element("button", "×", "close");
  row.append(...target.choices.map((choice, k) => choiceButton(target, choice, k, text)));
  close.setAttribute("aria-label", "Close");
  close.onclick = closeCard;
  card.replaceChildren(text, row, close);
  placeCard(target);
  if (usesKeyboard) row.firstChild.focus();
}

function choiceButton(target, choice, k, text) {
  const single = target.choices.length === 1, building = buildingSvgs[choice.short];
  const button = element("button", single ? "Confirm" : choice.short, single ? "main" : "");
  if (building) {
    const icon = createSvg("svg",
      { viewBox: "-14 -14 28 28", class: "bus icon", "aria-hidden": true });
    icon.innerHTML = building;
    button.prepend(icon);
  }
  button.dataset.action = choice.action;
  button.setAttribute("aria-label", describe(choice));
  if (!single) button.setAttribute("aria-keyshortcuts", k + 1);
  button.onpointerenter = button.onfocus = () => {
    text.textContent = capitalise(describe(choice));
    showGhost(target, choice);
  };
  button.onclick = () => onPick(choice.action);
  return button;
}

function closeCard() {
  const target = activeTarget;
  activate(null);
  if (usesKeyboard) markers.get(target?.id)?.focus();
}

/** Preview a choice on the drawing. */
function showGhost(target, choice) {
  clearLayer("ghosts");
  const ghosts = layer(target.in, "ghosts"), building = buildingSvgs[choice.short];
  if (building) {
    const { x, y } = centre(target.shapes[0]);
    createSvg("g", { transform: `translate(${x} ${y}) scale(1.15)`, class: "ghost" }, ghosts)
      .innerHTML = building;
  }
  else for (const shape of choice.shapes) createShape(shape, ghosts, drawArrows).classList.add("ghost");
  choice.counts.forEach((count, k) => {  // the passengers at each station
    const { x, y, r } = target.shapes[k];
    createLabel(ghosts, { x, y: y - r - 14 }, `+${count}`);
  });
}

/** Place the card next to its target; on a phone at the bottom, or above the action board. */
function placeCard(target) {
  const { x, y, scale } = toScreen(target.in, centre(target.shapes[0]));
  if (getComputedStyle(card).position === "fixed") {
    if (target.in === "panels") {
      const top = toScreen("panels", { x: 0, y: PANELS_TOP }).y;
      card.style.bottom = `${Math.min(window.innerHeight - top, window.innerHeight - card.offsetHeight)}px`;
      return;
    }
    card.style.bottom = `${document.querySelector(".controls").offsetHeight + 6}px`;
    const hidden = y + 30 - card.getBoundingClientRect().top;
    if (hidden > 0) window.scrollBy({ top: hidden, behavior: "smooth" });
    return;
  }
  card.style.bottom = "";
  const frame = document.getElementById("views").getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = card;
  const reach = target.choices[0].counts.length ? 58 : 24;  // the numbers above a station stay visible
  const distance = reach * scale + 8;
  let left = Math.min(Math.max(x - frame.left - width / 2, 4), frame.width - width - 4);
  const isUpperHalf = target.in === "city" && y < frame.top + frame.height / 2;
  const isAbove = isUpperHalf && y > height + distance;
  let top = y - frame.top + (isAbove ? -height - distance : distance);  // away from the centre
  if (target.in === "panels") {  // below the clock, or over the legend
    left = frame.width - width - 4;
    if (!cardOpen) top = frame.height - height - 4;
  }
  card.style.left = `${left}px`;
  card.style.top = `${top}px`;
}

/** Scroll targets that are out of sight, as on a phone, into view. */
function scrollToTargets() {
  if (cardOpen || !targets.length) return;
  const heights = targets.map((target) => toScreen(target.in, centre(target.shapes[0])).y);
  const top = Math.min(...heights) - MARGIN, bottom = Math.max(...heights) + MARGIN;
  const controls = document.querySelector(".controls").getBoundingClientRect();
  const end = Math.min(controls.top, window.innerHeight);
  if (top < 0) window.scrollBy({ top, behavior: "smooth" });
  else if (bottom > end) window.scrollBy({ top: Math.min(bottom - end, top), behavior: "smooth" });
}

/** Handle a key; return whether it had a meaning here. */
export function handleChoiceKey({ key }) {
  if (key === "Tab" || key in ARROWS) usesKeyboard = true;
  if (cardOpen) {
    const buttons = [...card.querySelectorAll(".choices button")];
    if (key === "Escape") closeCard();
    else if (key in ARROWS) {
      const index = buttons.indexOf(document.activeElement) + ARROWS[key][0] + ARROWS[key][1];
      buttons[(index + buttons.length) % buttons.length].focus();
    } else if (/^[1-9]$/.test(key) && buttons[key - 1]) buttons[key - 1].click();
    else return false;
    return true;
  }
  const marker = document.activeElement?.closest(".target");
  if (!marker) return false;
  const target = targets.find(({ id }) => id === marker.dataset.target);
  if (key === "Enter" || key === " ") press(target, false);
  else if (key in ARROWS) neighbour(target, ARROWS[key])?.focus();
  else if (key === "Escape") marker.blur();
  else return false;
  return true;
}

/** The marker of the next target in a direction. */
function neighbour(target, [dx, dy]) {
  const position = (one) => toScreen(one.in, centre(one.shapes[0])), from = position(target);
  let best = null, leastCost = Infinity;
  for (const other of targets) {
    const to = position(other), x = to.x - from.x, y = to.y - from.y;
    const ahead = x * dx + y * dy, cost = ahead + 2 * (Math.abs(x * dy) + Math.abs(y * dx));
    if (ahead >= 1 && cost < leastCost) [best, leastCost] = [other, cost];
  }
  return markers.get(best?.id);
}
