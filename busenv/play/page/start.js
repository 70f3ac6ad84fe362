// The start page: players, rules and board of a new game, or a record to continue.

import { element, seatBadge } from "/static/page.js";
import { initDrawing, showParts } from "./drawing.js";

const $ = (id) => document.getElementById(id);
const path = location.pathname.replace(/\/$/, "");
const OTHER = "another agent…";
const PROGRESS_DELAY = 400;  // milliseconds between two requests of the progress
const PREVIEW_DELAY = 120;  // milliseconds from a change of the ply to the request
const RECORD_FIELDS = ["rules", "board-name", "first", "seed"];  // fixed by a record

let record = null, recordIsCity = false, hasDrawing = false, timer = null;

async function request(route, body, method = "POST") {
  const settings = body && { method, headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body) };
  const response = await fetch(path + route, settings);
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.message);
  return answer;
}

function showError(error) { $("error").textContent = error.message ?? error; }

// ---- seats

function seatRows() { return [...$("seats").children]; }

function isPerson(value) { return value === "me" || value === "friend"; }

function addSeat(value) {
  const row = element("div", "", "row"), seat = seatRows().length;
  const player = element("select"), detail = element("input");
  player.append(new Option("You", "me"), new Option("A friend (by link)", "friend"),
    ...options.agents.map(({ spec, name, description }) =>
      new Option(`${name ? `${name}: ` : ""}${description} (${spec})`, spec)),
    new Option(OTHER, OTHER));
  player.setAttribute("aria-label", `Player at seat ${seat}`);
  row.append(seatBadge(seat), player, detail);
  const listed = [...player.options].some((option) => option.value === value);
  player.value = listed ? value : OTHER;
  if (!listed) detail.value = value;
  player.onchange = () => { detail.value = ""; updateDetail(player, detail); };
  $("seats").append(row);
  updateDetail(player, detail);
  disableCityAgents();
}

/** Disable agents that play only the city if the game is on another board. */
function disableCityAgents() {
  const isCity = record === null
    ? options.city_boards.includes($("board-name").value) : recordIsCity;
  const cityOnly = options.agents.filter(({ city_only }) => city_only).map(({ spec }) => spec);
  for (const row of seatRows()) {
    const player = row.querySelector("select");
    for (const option of player.options) {
      option.disabled = !isCity && cityOnly.includes(option.value);
    }
    if (player.selectedOptions[0].disabled) player.value = options.default_opponent;
  }
}

/** Adapt a seat's text field: a person's name, or the spec of another agent. */
function updateDetail(player, detail) {
  const person = isPerson(player.value);
  detail.hidden = !person && player.value !== OTHER;
  detail.maxLength = person ? 40 : 4000;
  detail.placeholder = person ? "name" : "spec, such as uct:0.5s";
  detail.setAttribute("aria-label", person ? "Name" : "Agent spec");
  if (person) detail.removeAttribute("list");
  else detail.setAttribute("list", "specs");
  showSeveral();
}

function showSeveral() {
  $("several").hidden = seatRows().filter((row) => readSeat(row).kind === "me").length < 2;
}

function readSeat(row) {
  const [player, detail] = row.querySelectorAll("select, input");
  if (isPerson(player.value)) return { kind: player.value, name: detail.value };
  return { kind: "agent", spec: player.value === OTHER ? detail.value.trim() : player.value };
}

function setSeatCount(count) {
  while (seatRows().length > count) seatRows().at(-1).remove();
  while (seatRows().length < count) addSeat(options.default_opponent);
  showSeveral();
  $("add-seat").disabled = record !== null || count >= Math.max(...options.players);
  $("remove-seat").disabled = record !== null || count <= Math.min(...options.players);
  const first = $("first").value;
  $("first").replaceChildren(new Option("random", ""),
    ...seatRows().map((_, seat) => new Option(`seat ${seat}`, seat)));
  $("first").value = Number(first) < count ? first : "";
}

// ---- a record

async function loadRecord() {
  const [file] = $("file").files;
  if (!file) return;
  showError("");
  try {
    const text = await file.text(), preview = await request("/preview", { record: text });
    [record, recordIsCity] = [text, preview.is_city];
    for (const id of RECORD_FIELDS) $(id).disabled = true;
    setSeatCount(preview.players);
    disableCityAgents();
    $("ply").max = preview.plies;
    showPreview(preview);
  } catch (error) {
    removeRecord();
    showError(error);
  }
}

function showPreview({ ply, plies, over, view }) {
  $("preview").hidden = false;
  $("ply").value = ply;
  $("position").textContent = `After ${ply} of ${plies} moves. ${view.headline}`
    + (over ? ". The game is over here: choose an earlier move to continue from" : "");
  if (!hasDrawing) initDrawing(options, Object.keys(view.parts));
  hasDrawing = true;
  showParts(view.parts);
}

function removeRecord() {
  clearTimeout(timer);
  record = null;
  $("file").value = "";
  $("preview").hidden = true;
  for (const id of RECORD_FIELDS) $(id).disabled = false;
  setSeatCount(seatRows().length);
  disableCityAgents();
}

function changePly() {
  clearTimeout(timer);
  timer = setTimeout(async () => {
    const ply = +$("ply").value, text = record;
    try {
      const preview = await request("/preview", { record: text, ply });
      if (record === text && +$("ply").value === ply) showPreview(preview);
    } catch (error) { if (record === text) showError(error); }
  }, PREVIEW_DELAY);
}

// ---- the game

async function startGame(event) {
  event.preventDefault();
  showError("");
  $("start").disabled = true;
  try {
    await prepared;
    const game = { seats: seatRows().map(readSeat), rules: $("rules").value,
      board: $("board-name").value, record, ply: record === null ? null : +$("ply").value,
      first_player: $("first").value === "" ? null : +$("first").value,
      seed: $("seed").value || null };
    location.href = (await request("/games", game)).link;
  } catch (error) {
    showError(error);
    $("start").disabled = false;
  }
}

function listGames() {
  $("saved").hidden = !options.games.length;
  $("games").replaceChildren(...options.games.map((game) => {
    const row = element("div", "", "game"), link = element("a", game.headline);
    const remove = element("button", "Delete");
    link.href = game.link;
    link.append(element("small", `${game.created}, ${game.ply} moves: ${game.seats.join(", ")}`));
    remove.type = "button";
    remove.onclick = () => deleteGame(game, remove);
    row.append(link, remove);
    return row;
  }));
}

/** Delete a game, after a second click. */
async function deleteGame(game, button) {
  if (button.textContent === "Delete") return void (button.textContent = "Delete for good");
  try {
    await request(`/games/${game.id}`, {}, "DELETE");
    options.games = options.games.filter((other) => other !== game);
    listGames();
  } catch (error) { showError(error); }
}

/** Show the progress of compilation until it is complete. */
async function showProgress() {
  for (;;) {
    const { done, total } = await request("/progress");
    $("preparing").hidden = done >= total;
    if (done >= total) return;
    [$("progress").value, $("progress").max] = [done, total];
    await new Promise((resolve) => setTimeout(resolve, PROGRESS_DELAY));
  }
}

function showEdition() {
  const edition = options.editions.find(({ name }) => name === $("rules").value);
  $("edition").textContent = edition?.description ?? "";
}

const prepared = showProgress().catch(showError);
const options = await request("/options");
for (const { spec } of options.agents) $("specs").append(new Option(spec));
for (const { name } of options.editions) $("rules").append(new Option(name));
for (const name of options.boards) $("board-name").append(new Option(name));
options.seats.forEach(addSeat);
setSeatCount(options.seats.length);
showEdition();
listGames();
$("add-seat").onclick = () => setSeatCount(seatRows().length + 1);
$("remove-seat").onclick = () => setSeatCount(seatRows().length - 1);
$("rules").onchange = showEdition;
$("board-name").onchange = disableCityAgents;
$("file").onchange = loadRecord;
$("remove-record").onclick = removeRecord;
$("ply").oninput = changePly;
$("form").onsubmit = startGame;
