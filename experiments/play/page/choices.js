// Deciding: the legal choices on the picture, what each would do in words, and taking one.
//
// Pointing at a spot, or going to it by keyboard, says what it would do. A click does it, where it
// has one choice; else it opens a card with the choices. A tap opens the card in any case.

import { element } from "/static/page.js";
import { colourLayers, distanceTo, draw, drawShape, drawingOf, emptyLayer, layer, middleOf, onScreen,
  pointIn } from "./picture.js";

const REACH = { mouse: 14, pen: 20, touch: 30 };  // pixels from a shape within which it is meant
const EDGE = 24;  // pixels from a spot to what may hide it
const BUILDINGS = ["house", "office", "pub"];
const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

const card = document.getElementById("card");
let pieces;  // how pieces look, for previews
let take = () => {};  // called with the action chosen
let spots = [], signs = new Map();  // by id, the group on the picture
let arrows = true;
let active = null, pinned = false, byKeys = false, pointer = "mouse";

export function beginChoices(drawnPieces, taken) {
  pieces = drawnPieces;
  take = taken;
  for (const name of ["city", "panels"]) {
    const svg = drawingOf(name);
    svg.addEventListener("pointerdown", (event) => { pointer = event.pointerType; byKeys = false; });
    svg.addEventListener("pointermove", (event) => {
      if (event.pointerType !== "touch" && !pinned) activate(spotAt(name, event));
    });
    svg.addEventListener("pointerleave", () => { if (!pinned && !byKeys) activate(null); });
    svg.addEventListener("click", (event) => {
      if (event.detail === 0) return;  // not by a pointer: the keyboard has its own way
      const spot = spotAt(name, event);
      if (spot) press(spot, pointer === "touch");
      else activate(null);
    });
  }
}

/** Offer these choices of a seat instead of those before. directed: lines grow from one end to the
 * other. */
export function offer(offered, seat = 0, directed = true) {
  const inside = document.activeElement?.closest(".spot, #card");
  spots = offered;
  arrows = directed;
  signs = new Map();
  activate(null);
  emptyLayer("spots");
  colourLayers(["spots", "ghosts"], seat);
  const buttons = [];
  for (const spot of spots) {
    if (spot.in) signs.set(spot.id, drawSign(spot));
    else for (const choice of spot.choices) buttons.push(plainButton(choice));
  }
  document.getElementById("plain").replaceChildren(...buttons);
  if (!spots.length) return;
  if (inside || byKeys) (signs.values().next().value ?? buttons[0]).focus();
  else setTimeout(comeIntoSight);  // to know where they are takes time: the picture comes first
}

function plainButton(choice) {
  const button = element("button", choice.words, "main");
  button.onclick = () => take(choice.action);
  return button;
}

function drawSign(spot) {
  const words = spot.choices.length === 1 ? inWords(spot.choices[0])
    : `${spot.label}: ${spot.choices.map((choice) => choice.short).join(", ")}`;
  const sign = draw("g", { class: `spot ${spot.id.split("-")[0]}`, tabindex: 0, role: "button",
    "data-spot": spot.id, "aria-label": words }, layer(spot.in, "spots"));
  for (const shape of spot.shapes) {
    drawShape(shape, sign, arrows);
    if (shape.kind === "line" && arrows && spot.choices.length > 1)
      drawShape({ ...shape, x1: shape.x2, y1: shape.y2, x2: shape.x1, y2: shape.y1 }, sign);
  }
  if (spot.id === "pass") label(sign, middleOf(spot.shapes[0]), "Pass");
  sign.addEventListener("focus", () => { if (!pinned) activate(spot); });
  sign.addEventListener("blur", () => { if (!pinned && byKeys) activate(null); });
  return sign;
}

function above({ x, y, r }) { return { x, y: y - r - 14 }; }

function label(sign, { x, y }, words) {
  draw("text", { x, y: y + 6, "font-size": 18, "text-anchor": "middle" }, sign).textContent = words;
}

function inWords(choice) { return choice.note ? `${choice.words}: ${choice.note}` : choice.words; }

/** The spot that is meant at a place of the pointer: the nearest one within reach. */
function spotAt(drawing, event) {
  const at = pointIn(drawing, event), { scale } = onScreen(drawing, at);
  let best = null, least = (REACH[event.pointerType] ?? REACH.mouse) / scale;
  for (const spot of spots) {
    if (spot.in !== drawing) continue;
    const away = Math.min(...spot.shapes.map((shape) => distanceTo(shape, at)));
    const closer = away < least || (away === least && best && nearer(spot, best, at));
    if (closer || (away === 0 && !best)) [best, least] = [spot, away];
  }
  return best;
}

function nearer(spot, other, at) {
  const away = (one) => Math.min(...one.shapes.map((shape) => {
    const { x, y } = middleOf(shape);
    return Math.hypot(x - at.x, y - at.y);
  }));
  return away(spot) < away(other);
}

/** Say what a spot would do, and light it up; null: nothing. */
function activate(spot) {
  if (spot === active && !pinned) return;
  signs.get(active?.id)?.classList.remove("on");
  [active, pinned] = [spot, false];
  emptyLayer("ghosts");
  card.hidden = !spot;
  if (!spot) return;
  signs.get(spot.id)?.classList.add("on");
  const only = spot.choices.length === 1;
  const verb = pointer === "touch" ? "tap" : "click";
  card.className = "";
  card.replaceChildren(element("p", only ? capital(inWords(spot.choices[0]))
    : `${capital(spot.label)}: ${verb} to choose`));
  if (only) showGhost(spot, spot.choices[0]);
  place(spot);
}

function capital(words) { return words.charAt(0).toUpperCase() + words.slice(1); }

/** A click, a tap, Enter. */
function press(spot, careful) {
  const only = spot.choices.length === 1;
  if (only && (!careful || (pinned && active === spot))) return take(spot.choices[0].action);
  if (pinned && active === spot) return;
  activate(spot);
  pin(spot);
}

/** Open the card with the spot's choices. */
function pin(spot) {
  pinned = true;
  card.className = "open";
  const words = element("p", capital(spot.label));
  const row = element("div", "", "choices");
  const only = spot.choices.length === 1;
  if (only) words.textContent = capital(inWords(spot.choices[0]));
  spot.choices.forEach((choice, k) => row.append(choiceButton(spot, choice, k, only, words)));
  const close = element("button", "×", "close");
  close.setAttribute("aria-label", "Close");
  close.onclick = unpin;
  card.replaceChildren(words, row, close);
  place(spot);
  if (byKeys) row.firstChild.focus();
}

function choiceButton(spot, choice, k, only, words) {
  const button = element("button", only ? "Do it" : choice.short, only ? "main" : "");
  const kind = BUILDINGS.indexOf(choice.short);
  if (kind >= 0) button.prepend(icon(pieces.buildings[kind]));
  button.dataset.action = choice.action;
  button.setAttribute("aria-label", inWords(choice));
  if (!only) button.setAttribute("aria-keyshortcuts", k + 1);
  const tell = () => {
    words.textContent = capital(inWords(choice));
    showGhost(spot, choice);
  };
  button.addEventListener("pointerenter", tell);
  button.addEventListener("focus", tell);
  button.onclick = () => take(choice.action);
  return button;
}

function icon(piece) {
  const svg = draw("svg", { viewBox: "-14 -14 28 28", class: "bus icon", "aria-hidden": true });
  svg.innerHTML = piece;
  return svg;
}

function unpin() {
  const spot = active;
  pinned = false;
  activate(null);
  if (byKeys) signs.get(spot?.id)?.focus();
}

/** What the picture would show of a choice. */
function showGhost(spot, choice) {
  emptyLayer("ghosts");
  if (!spot.in) return;
  const ghosts = layer(spot.in, "ghosts"), kind = BUILDINGS.indexOf(choice.short);
  if (kind >= 0) {
    const { x, y } = middleOf(spot.shapes[0]);
    draw("g", { transform: `translate(${x} ${y}) scale(1.15)`, class: "ghost" }, ghosts)
      .innerHTML = pieces.buildings[kind];
  }
  else for (const shape of choice.shapes) drawShape(shape, ghosts, arrows).classList.add("ghost");
  if (spot.id === "split")  // how many come to each station
    choice.short.split(" | ").forEach((count, k) => label(ghosts, above(spot.shapes[k]), `+${count}`));
}

/** Put the card beside its spot, where there is room; on a phone it lies at the bottom. */
function place(spot) {
  if (!spot.in) return;
  const controls = document.querySelector(".controls");
  card.style.bottom = "";
  if (getComputedStyle(card).position === "fixed") {
    card.style.bottom = `${controls.offsetHeight + 6}px`;
    const hidden = onScreen(spot.in, middleOf(spot.shapes[0])).y + 30
      - card.getBoundingClientRect().top;
    if (hidden > 0) window.scrollBy({ top: hidden, behavior: "smooth" });
    return;
  }
  const points = spot.shapes.map((shape) => onScreen(spot.in, middleOf(shape)));
  const frame = document.getElementById("views").getBoundingClientRect();
  const { x, y, scale } = points[0];
  const away = 24 * scale + 8, { offsetWidth: width, offsetHeight: height } = card;
  if (spot.in === "panels") {  // they stand at the right: the card beside them, over the map
    card.style.left = `${document.getElementById("panels").offsetLeft - width - 4}px`;
    card.style.top = `${y - frame.top - height / 2}px`;
    return;
  }
  const left = Math.min(Math.max(x - frame.left - width / 2, 4), frame.width - width - 4);
  const above = y - height - away > Math.max(frame.top, 0);
  const top = y - frame.top + (above ? -height - away : away);
  card.style.left = `${left}px`;
  card.style.top = `${top}px`;
}

/** Where spots are out of sight, as on a phone, scroll just as far as they need. */
function comeIntoSight() {
  if (pinned) return;
  const places = spots.filter((spot) => spot.in)
    .map((spot) => onScreen(spot.in, middleOf(spot.shapes[0])).y);
  if (!places.length) return;
  const top = Math.min(...places) - EDGE, bottom = Math.max(...places) + EDGE;
  const controls = document.querySelector(".controls").getBoundingClientRect();
  const end = Math.min(controls.top, window.innerHeight);
  if (top < 0) window.scrollBy({ top, behavior: "smooth" });
  else if (bottom > end) window.scrollBy({ top: Math.min(bottom - end, top), behavior: "smooth" });
}

/** A key; whether it meant something here. */
export function choiceKey(event) {
  byKeys = true;
  const key = event.key, buttons = [...card.querySelectorAll(".choices button")];
  if (pinned) {
    const at = buttons.indexOf(document.activeElement);
    if (key === "Escape") unpin();
    else if (key in STEPS) {
      const by = STEPS[key][0] + STEPS[key][1];
      buttons[(at + by + buttons.length) % buttons.length].focus();
    } else if (/^[1-9]$/.test(key) && buttons[key - 1]) buttons[key - 1].click();
    else return false;
    return true;
  }
  const sign = document.activeElement?.closest(".spot");
  if (!sign) return false;
  const spot = spots.find(({ id }) => id === sign.dataset.spot);
  if (key === "Enter" || key === " ") press(spot, false);
  else if (key in STEPS) neighbour(spot, STEPS[key])?.focus();
  else if (key === "Escape") sign.blur();
  else return false;
  return true;
}

/** The sign of the next spot in a direction. */
function neighbour(spot, [dx, dy]) {
  const where = (one) => onScreen(one.in, middleOf(one.shapes[0])), here = where(spot);
  let best = null, least = Infinity;
  for (const other of spots) {
    if (other === spot || !other.in) continue;
    const there = where(other), x = there.x - here.x, y = there.y - here.y;
    const ahead = x * dx + y * dy, aside = Math.abs(x * dy) + Math.abs(y * dx);
    if (ahead < 1 || ahead + 2 * aside >= least) continue;
    [best, least] = [other, ahead + 2 * aside];
  }
  return signs.get(best?.id);
}

/** Put the keyboard's focus on the first choice. */
export function focusChoices() {
  byKeys = true;
  const first = signs.values().next().value ?? document.querySelector("#plain button");
  first?.focus();
}
