// The game page: shows the messages of the server and sends the player's requests.

import { element, percent, seatBadge, showHeadline } from "/static/page.js";
import { clearAnalysis, clearChart, clearMarks, markBestMoves, showAnalysis, showChart,
  showNodeOnChart } from "./analysis.js";
import { focusChoices, handleChoiceKey, initChoices, showChoices } from "./choices.js";
import { connect } from "./connection.js";
import { initDrawing, showDelivery, showParts } from "./drawing.js";
import { showLinks } from "./links.js";
import { addMoves, clearMoves, getNode, showMoves, variationThrough } from "./moves.js";
import { showResult } from "./result.js";
import { offerTour, startTour } from "./tour.js";

const TIP = "Point at a highlighted place to read what it does. Press ? for help.";
const $ = (id) => document.getElementById(id);
const HINT_SIMULATIONS = 1000;  // of the search, before a hint is shown
const path = location.pathname.replace(/\/$/, "");
const views = new Map();  // by node: headline, and parts of the drawing

let init = null, state = null, seats = [], spectators = 0;
let viewedNode = null;  // node on display, where it is not the game's current one
let drawnNode = null, choicesNode = null;  // node on the drawing; node whose choices are shown
let analysing = false, chartShown = false, resultShown = false, rematchRequested = false;
let hintNode = null;  // node for which a hint is on display or awaited
let isHintNotice = false;  // whether the notice is about the hint
let refreshState = "";  // "done": displayed in this frame; "pending": to be displayed in the next

// ---- messages from the server

const handlers = {
  init(message) {
    [init, state, drawnNode, choicesNode, viewedNode] = [message, null, null, null, null];
    views.clear();
    clearMoves();
    for (const id of ["undo", "redo", "pause", "speed", "jump"])
      $(id).hidden = init.you.role !== "host";
    $("edition").textContent = `This game: edition ${init.edition}, board ${init.board}.`;
    $("hint").hidden = $("analyse").hidden = init.you.role === "spectator";
    $("invite").hidden = $("new").hidden = !init.links;
    if (init.you.seats.length) offerTour();
    if (init.links) $("new").href = init.links.start;
    showNotice("");
  },
  tree({ nodes }) { addMoves(nodes); },
  view(message) {
    if (!views.size) {
      initDrawing(init, Object.keys(message.parts));
      initChoices(init.buildings, decide, withNames);
      drawnNode = null;
    }
    views.set(message.node, message);
    if (message.node === viewedNode) refresh();
  },
  state(message) {
    const before = state;
    state = message;
    if (before && before.node !== state.node) {
      if (!isHintNotice) showNotice("");
      if (viewedNode === state.node) viewedNode = null;
    }
    if (chartShown && String(before?.variation) !== String(state.variation))
      send({ type: "chart", enabled: true });
    if (before) showLastChange(state.last_change);
    refresh();
  },
  participants(message) {
    ({ seats, spectators } = message);
    showParticipants();
    refresh();
  },
  analysis(message) {
    if (message.node !== drawnNode) return;
    if (analysing) showAnalysis(message);
    if (message.node === hintNode) showHint(message);
  },
  chart(message) {
    if (!chartShown) return;
    showChart(message, init.you.seats, viewNode);
    showNodeOnChart(drawnNode);
  },
  rematch({ link }) {
    if (rematchRequested) return void (location.href = link);
    const anchor = element("a", "join it");
    anchor.href = link;
    showNotice("The host has started a rematch: ");
    $("notice").append(anchor);
  },
  error({ code, message }) {
    if (code !== "stale") showNotice(message, true);
    if (code === "no_estimate" && analysing) clearAnalysis(message);
    choicesNode = null;
    refresh();
  },
};

const send = connect(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${path}/socket`,
  (message) => handlers[message.type]?.(message),
  (problem) => {
    $("offline").hidden = !problem;
    $("offline").textContent = problem;
    if (problem && drawnNode !== null) showChoices([]);
  });

// ---- display

/** Display the current data: immediately, but at most once per frame. */
function refresh() {
  // A hidden page has no frames to wait for.
  if (refreshState && !document.hidden) return void (refreshState = "pending");
  refreshState = "done";
  requestAnimationFrame(() => {
    const pending = refreshState === "pending";
    refreshState = "";
    if (pending) refresh();
  });
  if (state && views.has(state.node)) display();
}

function display() {
  const node = viewedNode ?? state.node;
  if (!views.has(node)) return send({ type: "view", node });
  const view = views.get(node);
  if (node !== drawnNode) {
    const { parent, seat } = getNode(node);
    showParts(view.parts, drawnNode !== null && parent === drawnNode && !init.you.seats.includes(seat));
    drawnNode = node;
    $("board").dataset.node = node;
    clearMarks();
    showDelivery(getNode(node).delivery);
    if (analysing || hintNode !== null) requestAnalysis();
    if (isHintNotice && hintNode === null) showNotice("");  // a hint about another node
  }
  displayHeadline(view);
  displayChoices();
  displayControls();
  displayResult();
  setTimeout(() => {  // the drawing is painted first
    if (node !== drawnNode) return;
    showMoves(variationThrough(node, state.variation), node, state.node);
    showNodeOnChart(node);
  });
}

function displayHeadline(view) {
  const { turn } = state, live = viewedNode === null, yours = live && isYourTurn();
  let last = view.last;
  if (live && turn) {
    if (state.status === "paused")
      last += init.you.role === "host" ? ". The game is paused: press Continue" : ". The host has paused the game";
    else if (state.status === "forced") last += ". Only one legal action: it is played automatically";
    const prompt = yours && `${playsSeveral() ? nameOf(turn.seat) : "Your turn"}: ${turn.prompt}`;
    showHeadline(turn.seat, prompt || withNames(view.headline), "", withNames(last));
  } else showHeadline(view.seat, withNames(view.headline), "", withNames(last));
  document.title = yours ? "● Bus: your turn" : "Bus";
  $("board").classList.toggle("yours", yours);
  $("board").classList.toggle("past", !live);
  $("last").classList.toggle("thinking", live && state.status === "agent");
  if (state.failure) showNotice(state.failure, true);
}

function displayChoices() {
  const active = viewedNode === null && isYourTurn() && $("offline").hidden;
  const node = active ? state.node : null;
  if (active && node === choicesNode) return;  // an open card stays open
  choicesNode = node;
  $("frame").style.backgroundColor = active ? `var(--seat-${state.turn.seat})` : "";
  if (active) showChoices(state.targets, state.turn.seat, state.turn.phase !== "SETUP_FIRST_LINE");
  else showChoices([]);
}

function displayControls() {
  $("undo").disabled = !state.can_undo;
  $("redo").disabled = !state.can_redo;
  $("pause").disabled = state.status === "over";
  $("hint").disabled = isOver(drawnNode);
  $("analyse").disabled = isOver(drawnNode) && !analysing;
  $("pause").textContent = state.paused ? "Continue" : "Pause";
  $("pause").classList.toggle("main", state.paused && Boolean(state.turn));
  if (document.activeElement !== $("delay")) $("delay").value = state.delay;
  $("record").href = `${path}/record.json`;
  $("replay").href = `${path}/replay.html`;
  $("viewing").hidden = viewedNode === null;
  $("viewing").firstChild.textContent = viewedNode === null ? ""
    : `You are viewing move ${getNode(viewedNode)?.ply ?? ""} of `
      + `${variationThrough(viewedNode, state.variation).length - 1}.`;
}

function displayResult() {
  const hadResult = resultShown;
  resultShown = Boolean(state.result) && viewedNode === null;
  if (!resultShown) $("result").hidden = true;
  if (!resultShown || hadResult) return;
  const replay = element("a", "Replay page", "button");
  replay.href = `${path}/replay.html`;
  replay.target = "_blank";
  const chart = button("Show the chart", () => {
    if (!chartShown) commands.chart();
    $("result").hidden = true;
  });
  const buttons = [replay, chart];
  if (init.links) buttons.unshift(button("Rematch", startRematch, "main"));
  showResult(state.result, seats.map(({ seat }) => nameOf(seat)), withNames, buttons);
}

function showParticipants() {
  if (document.querySelector(".chip input:focus")) return;  // a name is being edited
  const chips = seats.map(({ seat, kind, name, spec, connections }) => {
    const chip = element("span", "", "chip");
    chip.dataset.seat = seat;
    chip.append(seatBadge(seat), ` ${nameOf(seat)}`);
    if (spec && spec !== name) chip.append(element("small", spec));
    if (kind !== "agent" && !connections) chip.append(element("small", " (offline)"));
    if (kind === "friend" && !connections && init.links)
      chip.append(button("Send link", commands.invite, "send-link"));
    if (kind !== "agent" && init.you.seats.includes(seat)) {
      const rename = button("✎", () => editName(seat), "rename");
      rename.setAttribute("aria-label", `Rename seat ${seat}`);
      chip.append(rename);
    }
    return chip;
  });
  if (spectators) chips.push(element("span", `${spectators} watching`, "chip"));
  $("participants").replaceChildren(...chips);
}

function editName(seat) {
  const chip = document.querySelector(`.chip[data-seat="${seat}"]`);
  const input = document.createElement("input");
  input.maxLength = 40;
  input.value = seats[seat].name === "you" ? "" : seats[seat].name;
  input.setAttribute("aria-label", `Name of seat ${seat}`);
  input.onchange = () => send({ type: "rename", seat, name: input.value });
  input.onkeydown = ({ key }) => { if (key === "Enter") input.blur(); };
  input.onblur = showParticipants;
  chip.replaceChildren(seatBadge(seat), " ", input);
  input.focus();
}

function playsSeveral() { return init.you.seats.length > 1; }

function nameOf(seat) {
  const name = seats[seat]?.name ?? "";
  return name === "you" && playsSeveral() ? `player ${seat}` : name;
}

/** Put the players' names in a text that says "seat N"; players of the same name keep the number. */
function withNames(text) {
  return text.replace(/\bseat (\d)\b/gi, (_, digit) => {
    const name = nameOf(+digit), isUnique = seats.filter(({ seat }) => nameOf(seat) === name).length === 1;
    return name && (isUnique ? name : `${name} ${digit}`);
  }).replace(/\byou wins/, "you win");
}

function isOver(node) { return getNode(node)?.turn < 0; }

function isYourTurn() { return Boolean(state?.turn?.yours); }

function button(text, onclick, className = "") {
  const created = element("button", text, className);
  created.onclick = onclick;
  return created;
}

/** Show a notice, or the tip for an empty text. */
function showNotice(text, isError = false) {
  $("notice").textContent = withNames(text) || TIP;
  $("notice").classList.toggle("tip", !text);
  $("notice").classList.toggle("bad", isError && Boolean(text));
  isHintNotice = false;
}

function showHintNotice(text) {
  showNotice(text);
  isHintNotice = true;
}

function showLastChange(change) {
  if (!change || init.you.role === "host") return;
  const texts = { undo: "took back a move", redo: "restored a move", jump: "jumped to another move",
    pause: "paused the agents", continue: "continued the game", delay: "changed the speed" };
  showNotice(`The host ${texts[change]}.`);
}

// ---- commands of the player

function decide(action) {
  send({ type: "decide", node: state.node, action });
  showChoices([]);
}

function viewNode(node) {
  viewedNode = node === state.node ? null : node;
  refresh();
}

function viewStep(offset) {
  const node = viewedNode ?? state.node, nodes = variationThrough(node, state.variation);
  const index = nodes.indexOf(node) + offset;
  viewNode(nodes[Math.min(Math.max(index, 0), nodes.length - 1)]);
}

/** Request the analysis of the node on display, for the panel or for a hint, or end it. */
function requestAnalysis() {
  clearAnalysis(isOver(drawnNode) ? "The game is over at this move." : "Searching…");
  if (hintNode !== drawnNode) dropHint();
  const wanted = (analysing || hintNode !== null) && !isOver(drawnNode);
  send({ type: "analysis", node: wanted ? drawnNode : null });
}

/** Show the best move of the analysis; while the panel is open, as it changes. */
function showHint({ node, agent, simulations, running, best_moves: bestMoves }) {
  if (running && simulations < HINT_SIMULATIONS) return;
  const [best] = bestMoves;
  showHintNotice(best ? `Best move of ${agent}: ${best.text} (${percent(best.share)}).`
    : `${agent} has no best move here.`);
  if (best && viewedNode === null && isYourTurn())
    $("notice").append(" ", button("Play it", () => decide(best.action)));
  if (analysing) return;
  send({ type: "analysis" });
  hintNode = null;
  markBestMoves(bestMoves.slice(0, 1));
}

/** Drop a hint that is displayed or awaited, and its notice. */
function dropHint() {
  if (hintNode !== null && isHintNotice) showNotice("");
  hintNode = null;
}

function startRematch() {
  rematchRequested = true;
  send({ type: "rematch" });
}

function changeHistory(request) {
  viewedNode = null;
  send({ ...request, node: state.node });
}

const commands = {
  undo: () => changeHistory({ type: "undo" }),
  redo: () => changeHistory({ type: "redo" }),
  hint() {
    showHintNotice("Searching…");
    hintNode = drawnNode;
    requestAnalysis();
  },
  analyse() {
    analysing = !analysing;
    $("analyse").setAttribute("aria-pressed", analysing);
    $("analysis").hidden = !analysing;
    dropHint();
    requestAnalysis();
  },
  chart() {
    chartShown = !chartShown;
    $("chart").setAttribute("aria-pressed", chartShown);
    $("chart").textContent = chartShown ? "Hide" : "Show";
    clearChart();
    send({ type: "chart", enabled: chartShown });
    if (chartShown) $("chart-card").scrollIntoView({ block: "nearest" });
  },
  pause: () => send({ type: "pause", enabled: !state.paused }),
  back: () => viewNode(state.node),
  jump: () => changeHistory({ type: "jump", target: viewedNode }),
  help: () => $("help-dialog").showModal(),
  rules() {
    $("rules-dialog").showModal();
    $("rules-title").focus();  // the first lines, not the button at the end
  },
  tour: () => startTour(),
  invite: () => showLinks(init, seats),
};
for (const [id, command] of Object.entries(commands)) $(id).onclick = command;
$("delay").onchange = () => send({ type: "delay", seconds: +$("delay").value });
const viewCommands = {
  Home: () => viewNode(0), PageUp: () => viewStep(-1), PageDown: () => viewStep(1),
  End: () => viewNode(state.node),
};
$("history").onclick = (event) => viewCommands[event.target.dataset.key]?.();
$("moves").addEventListener("click", (event) => {
  const row = event.target.closest("[data-node]");
  if (row) viewNode(+row.dataset.node);
});

const keys = { u: "undo", r: "redo", h: "hint", a: "analyse", g: "chart", p: "pause", "?": "help" };
document.addEventListener("keydown", (event) => {
  if (!state || event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.target.closest("input, select, dialog")) return;
  const { key } = event, id = keys[key];
  if (handleChoiceKey(event)) event.preventDefault();
  else if (id && !$(id).disabled && !$(id).hidden) commands[id]();
  else if (viewCommands[key]) viewCommands[key]();
  else if (key.startsWith("Arrow") && event.target === document.body) focusChoices();
  else return;
  event.preventDefault();
});
