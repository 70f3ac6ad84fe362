// The start page: players, rules and board of a new game, or a record to continue.

import { element, seatBadge } from "/static/page.js";

const $ = (id) => document.getElementById(id);
const path = location.pathname.replace(/\/$/, "");
const PROGRESS_DELAY = 400;  // milliseconds between two requests of the progress

let record = null, recordBoard = "";  // the text of a record, and the name of its board

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
  const player = element("select"), name = element("input");
  player.append(new Option("You", "me"), new Option("A friend (by link)", "friend"),
    ...options.agents.map(({ spec, name, description }) =>
      new Option(`${name ? `${name}: ` : ""}${description} (${spec})`, spec)));
  player.setAttribute("aria-label", `Player at seat ${seat}`);
  name.maxLength = 40;
  name.placeholder = "name";
  name.setAttribute("aria-label", "Name");
  row.append(seatBadge(seat), player, name);
  player.value = value;
  player.onchange = showNames;
  $("seats").append(row);
  disableCityAgents();
}

/** Disable agents that play only the city if the game is on another board. */
function disableCityAgents() {
  const board = record === null ? $("board-name").value : recordBoard;
  const isCity = options.city_boards.includes(board);
  const cityOnly = options.agents.filter(({ city_only }) => city_only).map(({ spec }) => spec);
  for (const row of seatRows()) {
    const player = row.querySelector("select");
    for (const option of player.options) {
      option.disabled = !isCity && cityOnly.includes(option.value);
    }
    if (player.selectedOptions[0].disabled) player.value = options.default_opponent;
  }
}

/** Show a name's field for each person. */
function showNames() {
  for (const row of seatRows())
    row.querySelector("input").hidden = !isPerson(row.querySelector("select").value);
  $("several").hidden = seatRows().filter((row) => readSeat(row).kind === "me").length < 2;
}

function readSeat(row) {
  const [player, name] = row.querySelectorAll("select, input");
  if (isPerson(player.value)) return { kind: player.value, name: name.value };
  return { kind: "agent", spec: player.value };
}

function setSeatCount(count) {
  while (seatRows().length > count) seatRows().at(-1).remove();
  while (seatRows().length < count) addSeat(options.default_opponent);
  showNames();
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
  if (!file) return removeRecord();
  showError("");
  try {
    const text = await file.text(), { players, board } = JSON.parse(text);
    if (!options.players.includes(players)) throw new Error();
    [record, recordBoard] = [text, board.name];
    $("settings").hidden = true;  // the record fixes them
    setSeatCount(players);
    disableCityAgents();
    $("remove-record").hidden = false;
  } catch {
    removeRecord();
    showError("This file is not a game record.");
  }
}

function removeRecord() {
  record = null;
  $("file").value = "";
  $("remove-record").hidden = true;
  $("settings").hidden = false;
  setSeatCount(seatRows().length);
  disableCityAgents();
}

// ---- the game

async function startGame(event) {
  event.preventDefault();
  showError("");
  $("start").disabled = true;
  try {
    await prepared;
    const game = { seats: seatRows().map(readSeat), rules: $("rules").value,
      board: $("board-name").value, record,
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
    link.append(element("small", `${game.created}, ${game.ply} move${game.ply === 1 ? "" : "s"}: ${game.seats.join(", ")}`));
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
$("form").onsubmit = startGame;
