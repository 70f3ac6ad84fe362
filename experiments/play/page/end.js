// The end of a game: who is where, and why among those with as many points.

import { element, seatBadge } from "/static/page.js";

const end = document.getElementById("end");

/** The panel of the end. names, mine: the players' names, and the seats of who looks; buttons: what
 *  to offer below. */
export function showEnd(result, names, mine, buttons) {
  const { ending, ranking, points, deliveries, time_stones: stones } = result;
  const seats = ranking.map((_, seat) => seat).sort((a, b) => ranking[a] - ranking[b]);
  const table = element("table"), head = element("tr");
  for (const word of ["place", "player", "points", "deliveries", "stones"])
    head.append(element("th", word, word === "player" ? "player" : ""));
  table.append(head);
  for (const seat of seats) {
    const row = element("tr"), player = element("td", "", "player");
    player.append(seatBadge(seat), ` ${names[seat]}`);
    row.append(element("td", ranking[seat] + 1), player, element("td", points[seat]),
      element("td", deliveries[seat]), element("td", stones[seat]));
    table.append(row);
  }
  const close = element("button", "×", "close");
  close.setAttribute("aria-label", "Close");
  close.onclick = () => { end.hidden = true; };
  const ties = seats.slice(1).map((seat, k) =>
    tieWords(seats[k], seat, { points, deliveries, stones })).filter(Boolean);
  const row = element("div", "", "buttons");
  row.append(...buttons);
  end.replaceChildren(close, element("h2", winnerWords(seats[0], names, mine)),
    element("p", `The game is over: ${ending}.`), table,
    ...ties.map((words) => element("p", words, "help")), row);
  end.hidden = false;
}

function winnerWords(seat, names, mine) {
  if (mine.length === 1 && mine[0] === seat) return "You win!";
  return `Seat ${seat} wins (${names[seat]})`;
}

/** Why one player is before another who has as many points (R20); "" where points tell. */
function tieWords(first, second, { points, deliveries, stones }) {
  if (points[first] !== points[second]) return "";
  const pair = `Seat ${first} is before seat ${second}: as many points`;
  if (stones[first] !== stones[second]) return `${pair}, more time stones.`;
  if (deliveries[first]) return `${pair} and time stones, but an earlier last delivery.`;
  return `${pair} and time stones, and no deliveries: the order of play decides.`;
}
