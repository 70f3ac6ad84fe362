// Links for the other seats and for spectators, to copy.

import { element, seatBadge } from "/static/page.js";

const dialog = document.getElementById("links"), list = document.getElementById("linked");

export function showLinks({ links, addresses }, seats) {
  const base = addresses[0] ?? location.origin;
  document.getElementById("reach").textContent = addresses.length
    ? "Send each friend the link of a seat. Whoever has a link plays that seat."
    : "These links work on this machine. For friends on your network, start busenv play with --host 0.0.0.0.";
  const rows = links.seats.flatMap((path, seat) =>
    path ? [linkRow([seatBadge(seat), ` ${seats[seat].name}`], base + path)] : []);
  rows.push(linkRow(["Spectators: look, but cannot move"], base + links.watch));
  list.replaceChildren(...rows);
  dialog.showModal();
}

function linkRow(words, address) {
  const row = element("div", "", "link"), label = element("label");
  const field = document.createElement("input"), copy = element("button", "Copy");
  field.value = address;
  field.readOnly = true;
  field.onfocus = () => field.select();
  label.append(...words, field);
  copy.type = "button";
  copy.onclick = async () => {
    field.select();
    try {
      await navigator.clipboard.writeText(address);
    } catch {
      document.execCommand("copy");  // where the page is not on a secure address
    }
    copy.textContent = "Copied";
  };
  row.append(label, copy);
  return row;
}
