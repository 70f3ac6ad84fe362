// Functions shared by the replay page and the play page.

export function element(kind, words = "", name = "") {
  const node = document.createElement(kind);
  node.textContent = words;
  if (name) node.className = name;
  return node;
}

export function percent(share) { return `${(100 * share).toFixed(0)}%`; }

export function seatBadge(seat) { return element("span", seat, `seat seat-${seat}`); }

/** Update parts of the drawing: SVG text by name of the part. */
export function drawParts(parts) {
  for (const [name, text] of Object.entries(parts))
    document.querySelector(`[data-part="${name}"]`).innerHTML = text;
}

/** Update the lines above the board: the seat to move, the headline, the last action. */
export function showHeadline(seat, words, name, last) {
  document.getElementById("turn").className = `seat seat-${seat}`;
  document.getElementById("turn").textContent = seat;
  document.getElementById("headline").textContent = words;
  document.getElementById("named").textContent = name ? `(${name})` : "";
  document.getElementById("last").textContent = last;
}

/** Mark a row of the list of moves, and scroll to it if it is out of sight. */
export function markMove(row) {
  const list = document.getElementById("moves");
  list.querySelector("[aria-current]")?.removeAttribute("aria-current");
  if (!row) return;
  row.setAttribute("aria-current", "step");
  const top = row.offsetTop, bottom = top + row.offsetHeight;
  const title = list.querySelector("h2").offsetHeight;  // covers the first rows on the game page
  if (top < list.scrollTop + title || bottom > list.scrollTop + list.clientHeight)
    list.scrollTop = top - list.clientHeight / 2;
}

/** Show a bar for each seat's probability to win. */
export function showChances(chances) {
  const bars = chances.flatMap((chance, seat) => {
    const bar = document.createElement("meter");
    bar.value = chance;
    bar.setAttribute("aria-label", `Seat ${seat}'s chance to win`);
    return [seatBadge(seat), bar, element("span", percent(chance))];
  });
  document.getElementById("chances").replaceChildren(...bars);
}

/** Show best moves, one row each: an element for the move, and its share. */
export function showBestMoves(rows) {
  const cells = rows.flatMap(([move, share]) => [move, element("span", percent(share))]);
  document.getElementById("best-moves").replaceChildren(...cells);
}

/** Move the cursor of every chart to a ply. */
export function moveCursors(ply, plies) {
  for (const chart of document.querySelectorAll(".chart")) {
    const left = +chart.dataset.left, right = +chart.dataset.right;
    const x = (right - left) * ply / Math.max(plies, 1);
    chart.querySelector(".cursor").setAttribute("transform", `translate(${x} 0)`);
  }
}

/** Return the ply of a click on a chart. */
export function plyAt(chart, event, plies) {
  const box = chart.getBoundingClientRect(), { left, right } = chart.dataset;
  const x = (event.clientX - box.left) / box.width * chart.viewBox.baseVal.width;
  return Math.round((x - left) / (right - left) * plies);
}
