// The tour of the game page: a few steps, each with the part of the page that it explains.

const $ = (id) => document.getElementById(id);
const KEY = "busenv-tour";  // in the browser's storage, once the tour has been offered
const STEPS = [
  ["#headline", "This line shows whose turn it is and what to do. You win with the most points: one for "
    + "each passenger you deliver, minus one for each time stone you take."],
  ["#city", "The city. Passengers live at the numbered intersections and want to go to a house, an office "
    + "or a pub, whichever the clock shows. Your line decides which of them your buses reach."],
  ["#city", "Your choices are highlighted in your colour. Point at one to read what it does, click to "
    + "play it. On a touch screen, tap once to read and again to confirm."],
  ["#panels", "The action board. Every round the players place markers here, at least two each. The "
    + "actions are resolved from top to bottom; point at a row to read what your marker will do."],
  ["#panels", "Below are the players with their points, stones, buses and markers. M, the largest "
    + "number of buses of any player, is the power of space A; each later space has one less."],
  [".controls", "Undo takes back your last decision, Hint shows a good move, and Analysis shows every "
    + "player's chance to win."],
  ["#chart-card", "Show draws every player's chance to win during the game and lists your costliest "
    + "decisions, with better moves."],
  ["#rules", "The rules on one page. Good luck!"],
];
let step = -1;

/** Start the tour unless this browser has shown it before. */
export function offerTour() {
  try {
    if (localStorage.getItem(KEY)) return;
    localStorage.setItem(KEY, "offered");
  } catch { return; }  // frames can lack a storage
  startTour();
}

export function startTour() { show(0); }

function show(next) {
  document.querySelector(".touring")?.classList.remove("touring");
  step = next < STEPS.length ? next : -1;
  $("tour-card").hidden = step < 0;
  if (step < 0) return;
  const [selector, text] = STEPS[step], part = document.querySelector(selector);
  part.classList.add("touring");
  part.scrollIntoView({ block: "nearest" });
  $("tour-text").textContent = text;
  $("tour-step").textContent = `${step + 1} of ${STEPS.length}`;
  $("tour-next").textContent = step + 1 < STEPS.length ? "Next" : "Done";
}

$("tour-next").onclick = () => show(step + 1);
$("tour-end").onclick = () => show(STEPS.length);
