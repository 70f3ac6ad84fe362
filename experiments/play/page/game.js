// The game page: what the server says is shown, what the player wants is sent.

import { element, seatBadge, showHeadline } from "/static/page.js";
import { beginChoices, choiceKey, focusChoices, offer } from "./choices.js";
import { showEnd } from "./end.js";
import { showLinks } from "./links.js";
import { forgetMoves, learnMoves, lineThrough, nodeOf, writeMoves } from "./moves.js";
import { beginPicture, showParts } from "./picture.js";
import { emptyAnalysis, forgetCourse, markFavourites, pointOutOnCourse, showAnalysis, showCourse,
  unmarkFavourites } from "./think.js";
import { connect } from "./wire.js";

const TIP = "Point at what is lit up to read what it does; ? tells the keys.";
const $ = (id) => document.getElementById(id);
const here = location.pathname.replace(/\/$/, "");
const views = new Map();  // by node, what the picture shows there

let hello = null, state = null, seats = [];
let looking = null;  // the node that is looked at, where that is not where the game stands
let drawn = null, offered = null;  // the node on the picture; the node whose choices are offered
let analysing = false, charting = false, ended = false;
let asked = 0, due = "";  // whether the picture was shown in this frame, and is to be again

// ---- what the server says

const heard = {
  hello(message) {
    [hello, state, drawn, offered, looking] = [message, null, null, null, null];
    views.clear();
    forgetMoves();
    offerHelpers();
    const mayAct = message.you.role !== "watch";
    for (const id of ["undo", "redo", "hint", "analyse", "pause", "pace", "from"])
      $(id).hidden = !mayAct;
    $("invite").hidden = !message.links;
    $("new").hidden = !message.links;
    if (message.links) $("new").href = message.links.start;
    say("");
    if (analysing) send({ type: "analysis", on: true, agent: $("analyst").value });
    if (charting) send({ type: "graph", on: true, agent: null });
  },
  tree({ nodes }) { learnMoves(nodes); },
  view(message) {
    const base = message.base === null ? null : views.get(message.base);
    if (!base && message.panels_from) {
      beginPicture(hello.views, Object.keys(message.parts), message.panels_from);
      beginChoices(hello.pieces, decide);
      drawn = null;
    }
    views.set(message.node, { ...message, parts: { ...base?.parts, ...message.parts } });
    if (message.node === looking) refresh();
  },
  state(message) {
    const before = state;
    state = message;
    if (before && before.node !== state.node) {
      say("");
      if (analysing) emptyAnalysis("Thinking…");
      else unmarkFavourites();
    }
    tellNews(state.news);
    if (before && before.node !== state.node && looking !== null && !before.line.includes(looking))
      looking = null;
    refresh();
  },
  who(message) {
    seats = message.seats;
    showWho(message.watching);
    refresh();
  },
  hint({ node, agent, favourites }) {
    if (node !== state.node) return;
    const [best] = favourites;
    if (!best) return say(`${agent} has no favourite here.`);
    say(`${agent} would ${imperative(best.words)} (${Math.round(100 * best.share)}%).`);
    if (yourTurn()) $("notice").append(" ", button("Do it", () => decide(best.action)));
    if (looking === null && !analysing) markFavourites(favourites.slice(0, 1));
  },
  analysis(message) {
    if (!analysing || message.node !== state.node) return;
    showAnalysis(message);
    if (looking !== null) unmarkFavourites();
  },
  graph(message) {
    if (!charting) return;
    showCourse(message, look);
    pointOutOnCourse(drawn);
  },
  moved({ link }) {
    if (asked === "again") location.href = link;
    else {
      const onward = element("a", "go there");
      onward.href = link;
      say("A new game has begun: ");
      $("notice").append(onward);
    }
  },
  error({ name, words }) {
    if (name !== "stale") say(words, true);
    if (name === "no_estimate" && analysing) emptyAnalysis(words);
    offered = null;
    refresh();
  },
};

const send = connect(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${here}/socket`,
  (message) => heard[message.type]?.(message),
  (words) => {
    $("offline").hidden = !words;
    $("offline").textContent = words;
    if (words && drawn !== null) offer([]);
  });

// ---- what is shown

/** Show how things are: at once, but only once a frame when much comes in. */
function refresh() {
  if (due) return void (due = "again");
  due = "shown";
  requestAnimationFrame(() => {
    const more = due === "again";
    due = "";
    if (more) refresh();
  });
  if (state && views.has(state.node)) paint();
}

function paint() {
  const node = looking ?? state.node;
  if (!views.has(node)) return send({ type: "view", nodes: [node] });
  const view = views.get(node);
  if (node !== drawn) {
    const { parent, seat } = nodeOf(node);
    showParts(view.parts, drawn !== null && parent === drawn && !hello.you.seats.includes(seat));
    drawn = node;
    $("board").dataset.node = node;
    if (looking !== null) unmarkFavourites();
  }
  showWords(view);
  showChoices();
  showControls();
  showResult();
  setTimeout(() => {
    if (node !== drawn) return;
    writeMoves(lineThrough(node, state.line), node, state.node);
    pointOutOnCourse(node);
  });
}

function showWords(view) {
  const { turn } = state;
  if (looking === null && turn) {
    const mine = turn.yours && !state.forced;
    const words = mine ? `${several() ? nameOf(turn.seat) : "Your turn"}: ${turn.ask}` : view.headline;
    showHeadline(turn.seat, words, mine ? "" : nameOf(turn.seat), view.last);
    document.title = mine ? "● Bus: your turn" : "Bus";
  } else {
    showHeadline(view.seat, view.headline, nameOf(view.seat), view.last);
    document.title = "Bus";
  }
  $("board").classList.toggle("yours", looking === null && yourTurn());
  $("board").classList.toggle("past", looking !== null);
  const waits = looking === null && turn && !state.paused;
  $("last").classList.toggle("thinking", Boolean(waits && state.thinking));
  if (waits && state.forced) $("last").textContent = `${view.last}. One way only: it goes by itself`;
  if (looking === null && state.paused && turn && turn.kind === "agent")
    $("last").textContent = `${view.last}. Agents wait: Go on lets them move`;
  if (state.trouble) say(state.trouble, true);
}

function showChoices() {
  const free = looking === null && yourTurn() && $("offline").hidden, node = free ? state.node : null;
  if (node === offered && free) return;  // what is being chosen stays open
  offered = node;
  $("frame").style.backgroundColor = free ? `var(--seat-${state.turn.seat})` : "";
  if (free) offer(state.spots, state.turn.seat, state.turn.phase !== "SETUP_FIRST_LINE");
  else offer([]);
}

function showControls() {
  $("undo").disabled = !state.undo;
  $("redo").disabled = !state.redo;
  $("hint").disabled = $("pause").disabled = state.over;
  $("analyse").disabled = state.over && !analysing;
  $("pause").textContent = state.paused ? "Go on" : "Pause";
  $("pause").classList.toggle("main", state.paused && Boolean(state.turn));
  const paces = [...$("pace").options].map(({ value }) => +value);
  const nearest = paces.reduce((a, b) => Math.abs(b - state.pace) < Math.abs(a - state.pace) ? b : a);
  if (document.activeElement !== $("pace")) $("pace").value = nearest;
  $("record").href = `${here}/record.json`;
  $("replay").href = `${here}/replay.html`;
  $("looking").hidden = looking === null;
  $("notice").hidden = looking !== null;
  if (looking !== null) {
    const all = state.line.length - 1;
    $("looking").firstChild.textContent =
      `You are looking at move ${nodeOf(looking)?.ply ?? ""} of ${all}.`;
  }
}

function showResult() {
  if (!state.result) {
    ended = false;
    $("end").hidden = true;
    return;
  }
  if (looking !== null) $("end").hidden = true;
  if (ended || looking !== null) return;
  ended = true;
  const buttons = [];
  if (hello.links) buttons.push(button("Play again", again, "main"));
  const replay = element("a", "Replay page", "button");
  replay.href = `${here}/replay.html`;
  replay.target = "_blank";
  const turning = () => {
    if (!charting) chart();
    $("end").hidden = true;
  };
  buttons.push(replay, button("Where did it turn?", turning));
  showEnd(state.result, seats.map(({ seat }) => nameOf(seat)), hello.you.seats, buttons);
}

function showWho(watching) {
  const chips = seats.map(({ seat, kind, here: count }) => {
    const chip = element("span", "", "chip");
    chip.dataset.seat = seat;
    chip.append(seatBadge(seat), ` ${nameOf(seat)}`);
    if (kind !== "agent" && !count) chip.append(element("small", " (away)"));
    if (kind !== "agent" && hello.you.seats.includes(seat)) {
      const rename = button("✎", () => askName(seat), "rename");
      rename.setAttribute("aria-label", `Rename seat ${seat}`);
      chip.append(rename);
    }
    return chip;
  });
  if (watching) chips.push(element("span", `${watching} watching`, "chip"));
  $("who").replaceChildren(...chips);
}

function askName(seat) {
  const chip = document.querySelector(`.chip[data-seat="${seat}"]`);
  const input = document.createElement("input");
  input.maxLength = 40;
  input.value = seats[seat].name === "you" ? "" : seats[seat].name;
  input.setAttribute("aria-label", `Name at seat ${seat}`);
  input.onchange = () => send({ type: "name", seat, name: input.value });
  input.onblur = () => showWho(0);
  chip.replaceChildren(seatBadge(seat), " ", input);
  input.focus();
}

function offerHelpers() {
  const chosen = $("analyst").value;
  $("analyst").replaceChildren(...hello.analysts.map((spec) => new Option(spec)));
  if (hello.analysts.includes(chosen)) $("analyst").value = chosen;
  $("analyse").hidden = !hello.analysts.length;
}

function several() { return hello.you.seats.length > 1; }

function nameOf(seat) {
  const name = seats[seat]?.name ?? "";
  return hello.you.seats.includes(seat) && !several() && name === "you" ? "you" : name;
}

function yourTurn() { return Boolean(state?.turn?.yours && !state.forced); }

function imperative(words) { return words.replace("passengers: ", "send "); }

function button(words, act, name = "") {
  const made = element("button", words, name);
  made.onclick = act;
  return made;
}

/** A line of news; without any, what is always good to know. */
function say(words, bad = false) {
  $("notice").textContent = words || TIP;
  $("notice").classList.toggle("tip", !words);
  $("notice").classList.toggle("bad", bad && Boolean(words));
}

function tellNews(news) {
  if (!news || hello.you.seats.includes(news.seat)) return;
  const deeds = { undo: "took back", redo: "went forward again", go: "went to another move",
    pause: "paused or went on" };
  say(`${nameOf(news.seat) || news.role} ${deeds[news.what] ?? news.what}.`);
}

// ---- what the player does

function decide(action) {
  send({ type: "decide", node: state.node, action });
  offer([]);
}

function look(node) {
  looking = node === state.node ? null : node;
  refresh();
}

function step(by) {
  const line = lineThrough(looking ?? state.node, state.line);
  const at = line.indexOf(looking ?? state.node) + by;
  look(line[Math.min(Math.max(at, 0), line.length - 1)]);
}

function analyse() {
  analysing = !analysing;
  $("analyse").setAttribute("aria-pressed", analysing);
  $("analysis").hidden = !analysing;
  emptyAnalysis("Thinking…");
  send({ type: "analysis", on: analysing, agent: analysing ? $("analyst").value : null });
}

function chart() {
  charting = !charting;
  $("graph").setAttribute("aria-pressed", charting);
  $("graph").textContent = charting ? "Hide" : "Show";
  forgetCourse();
  send({ type: "graph", on: charting, agent: null });
  if (charting) $("course").scrollIntoView({ block: "nearest" });
}

function again() {
  asked = "again";
  send({ type: "again" });
}

const deeds = {
  undo: () => { looking = null; send({ type: "undo", node: state.node }); },
  redo: () => { looking = null; send({ type: "redo", node: state.node }); },
  hint: () => { say("Thinking…"); send({ type: "hint", node: state.node, agent: null }); },
  analyse,
  graph: chart,
  pause: () => send({ type: "pause", on: !state.paused }),
  back: () => look(state.node),
  from: () => { const to = looking; looking = null; send({ type: "go", node: state.node, to }); },
  help: () => $("helping").showModal(),
  invite: () => showLinks(hello, seats),
};
for (const [id, deed] of Object.entries(deeds)) $(id).onclick = deed;
$("pace").onchange = () => send({ type: "pace", seconds: +$("pace").value });
$("analyst").onchange = () => {
  emptyAnalysis("Thinking…");
  send({ type: "analysis", on: true, agent: $("analyst").value });
};
$("history").onclick = (event) => {
  const where = event.target.dataset.look;
  if (where === "first") look(lineThrough(looking ?? state.node, state.line)[0]);
  else if (where === "now") look(state.node);
  else if (where) step(where === "before" ? -1 : 1);
};
$("moves").addEventListener("click", (event) => {
  const row = event.target.closest("[data-node]");
  if (row) look(+row.dataset.node);
});

const keys = { u: "undo", r: "redo", h: "hint", a: "analyse", g: "graph", p: "pause", "?": "help" };
const looks = { PageUp: () => step(-1), PageDown: () => step(1), Home: () => look(state.line[0]),
  End: () => look(state.node) };
document.addEventListener("keydown", (event) => {
  if (!state || event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.target.closest("input, select, dialog")) return;
  const deed = keys[event.key], { disabled, hidden } = deed ? $(deed) : {};
  if (choiceKey(event)) event.preventDefault();
  else if (deed && !disabled && !hidden) deeds[deed]();
  else if (looks[event.key]) looks[event.key]();
  else if (event.key.startsWith("Arrow") && event.target === document.body) focusChoices();
  else return;
  event.preventDefault();
});
