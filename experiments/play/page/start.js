// The start page: who sits where, by which rules, and from where.

import { element, seatBadge } from "/static/page.js";
import { beginPicture, showParts } from "./picture.js";

const $ = (id) => document.getElementById(id);
const here = location.pathname.replace(/\/$/, "");
const OTHER = "another agent…";
const SHORTEST_WAIT = 120;  // milliseconds from a change of the ply to asking for its picture

let choices, record = null, shown = null, timer = null;

async function ask(path, body) {
  const options = body && { method: "POST", headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body) };
  const answer = await fetch(here + path, options);
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.words ?? "The server refused.");
  return told;
}

function wrong(error) { $("wrong").textContent = error.message ?? error; }

// ---- seats

function rows() { return [...$("seats").children]; }

function addSeat(given) {
  const row = element("div", "", "row"), seat = rows().length;
  const who = document.createElement("select"), more = document.createElement("input");
  who.append(new Option("You", "me"), new Option("A friend, by a link", "friend"));
  for (const { spec, words } of choices.agents) who.append(new Option(`${words} (${spec})`, spec));
  who.append(new Option(OTHER, OTHER));
  who.setAttribute("aria-label", `Who sits at seat ${seat}`);
  more.maxLength = 200;
  row.append(seatBadge(seat), who, more);
  const known = [...who.options].some(({ value }) => value === given);
  who.value = known ? given : OTHER;
  if (!known) more.value = given;
  who.onchange = () => { more.value = ""; tellMore(who, more); };
  tellMore(who, more);
  $("seats").append(row);
}

/** What else there is to say of a seat: a person's name, an agent's spec. */
function tellMore(who, more) {
  const person = who.value === "me" || who.value === "friend";
  more.hidden = !person && who.value !== OTHER;
  more.placeholder = person ? "name" : "spec, such as uct:0.5s";
  more.setAttribute("aria-label", person ? "Name" : "The agent's spec");
  if (person) more.removeAttribute("list");
  else more.setAttribute("list", "specs");
}

function seatOf(row) {
  const [who, more] = row.querySelectorAll("select, input");
  if (who.value === "me" || who.value === "friend") return { kind: who.value, name: more.value };
  return { kind: "agent", spec: who.value === OTHER ? more.value.trim() : who.value };
}

function fitSeats(count) {
  while (rows().length > count) rows().at(-1).remove();
  while (rows().length < count) addSeat(choices.opponent);
  const fixed = record !== null;
  $("more").disabled = fixed || count >= Math.max(...choices.players);
  $("fewer").disabled = fixed || count <= Math.min(...choices.players);
  const chosen = $("first").value;
  $("first").replaceChildren(new Option("drawn", ""),
    ...rows().map((_, seat) => new Option(`seat ${seat}`, seat)));
  $("first").value = Number(chosen) < count ? chosen : "";
}

// ---- a record

async function readRecord() {
  const [file] = $("file").files;
  if (!file) return;
  wrong("");
  try {
    const text = await file.text(), told = await ask("/preview", { record: text });
    record = text;
    for (const name of ["rules", "board-name", "first", "seed"]) $(name).disabled = true;
    fitSeats(told.players);
    $("ply").max = told.plies;
    showPreview(told);
  } catch (error) {
    dropRecord();
    wrong(error);
  }
}

function showPreview({ ply, plies, over, view }) {
  $("preview").hidden = false;
  $("ply").value = ply;
  $("about").textContent = `After ${ply} of ${plies} moves. ${view.headline}`
    + (over ? ". The game is over here: go back to play on" : "");
  if (!shown) {
    const names = Object.keys(view.parts);
    beginPicture(choices.views, names, view.panels_from);
    shown = true;
  }
  showParts(view.parts);
}

function dropRecord() {
  record = null;
  $("file").value = "";
  $("preview").hidden = true;
  for (const name of ["rules", "board-name", "first", "seed"]) $(name).disabled = false;
  fitSeats(rows().length);
}

function moveTo() {
  clearTimeout(timer);
  timer = setTimeout(async () => {
    const ply = +$("ply").value;
    try {
      const told = await ask("/preview", { record, ply });
      if (+$("ply").value === ply) showPreview(told);
    } catch (error) { wrong(error); }
  }, SHORTEST_WAIT);
}

// ---- the game

async function begin(event) {
  event.preventDefault();
  wrong("");
  $("begin").disabled = true;
  try {
    const game = { seats: rows().map(seatOf), rules: $("rules").value, board: $("board-name").value,
      first_player: $("first").value === "" ? null : +$("first").value,
      seed: $("seed").value === "" ? null : $("seed").value,
      record, ply: record === null ? null : +$("ply").value };
    location.href = (await ask("/games", game)).link;
  } catch (error) {
    wrong(error);
    $("begin").disabled = false;
  }
}

function listGames() {
  $("kept").hidden = !choices.games.length;
  $("games").replaceChildren(...choices.games.map((game) => {
    const link = element("a", game.headline, "game");
    link.href = game.link;
    link.append(element("small", `${game.begun}, ${game.ply} moves: ${game.seats.join(", ")}`));
    return link;
  }));
}

function tellEdition() {
  const edition = choices.editions.find(({ name }) => name === $("rules").value);
  $("edition").textContent = edition?.words ?? "";
}

choices = await ask("/choices");
for (const { spec } of choices.agents) $("specs").append(new Option(spec));
for (const { name } of choices.editions) $("rules").append(new Option(name));
for (const name of choices.boards) $("board-name").append(new Option(name));
for (const given of choices.seats) addSeat(given);
fitSeats(choices.seats.length);
tellEdition();
listGames();
$("more").onclick = () => fitSeats(rows().length + 1);
$("fewer").onclick = () => fitSeats(rows().length - 1);
$("rules").onchange = tellEdition;
$("file").onchange = readRecord;
$("drop").onclick = dropRecord;
$("ply").oninput = moveTo;
$("form").onsubmit = begin;
