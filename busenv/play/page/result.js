// The result of a game: the ranking, and what decides between equal points.

import { element, seatBadge } from "/static/page.js";

const panel = document.getElementById("result");

/** Show the result. names: of the players by seat; withNames: puts them in a text. */
export function showResult(result, names, withNames, buttons) {
  const { ending, ranking, points, deliveries, time_stones: stones } = result;
  const seats = ranking.map((_, seat) => seat).sort((a, b) => ranking[a] - ranking[b]);
  const table = element("table"), head = element("tr");
  for (const word of ["rank", "player", "points", "deliveries", "stones"])
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
  close.onclick = () => { panel.hidden = true; };
  const title = withNames(`Seat ${seats[0]} wins`).replace(/^you win$/, "You win!");
  const ties = seats.slice(1).map((seat, k) =>
    explainTie(seats[k], seat, { points, deliveries, stones })).filter(Boolean);
  const row = element("div", "", "buttons");
  row.append(...buttons);
  panel.replaceChildren(close, element("h2", title),
    element("p", `The game is over: ${ending}.`), table,
    ...ties.map((text) => element("p", withNames(text), "help")), row);
  panel.hidden = false;
}

/** Why one player ranks before another with equal points (R20); "" if the points differ. */
function explainTie(first, second, { points, deliveries, stones }) {
  if (points[first] !== points[second]) return "";
  const pair = `Equal points: seat ${first} before seat ${second} by`;
  if (stones[first] !== stones[second]) return `${pair} more time stones.`;
  if (deliveries[first]) return `${pair} the earlier last delivery.`;
  return `${pair} the order of play.`;
}
