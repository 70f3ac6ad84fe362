// The dialog with the links of friends and spectators.

import { element, seatBadge } from "/static/page.js";

const dialog = document.getElementById("links");

export function showLinks({ links, addresses }, seats) {
  const base = addresses[0] ?? location.origin;
  document.getElementById("links-help").textContent = addresses.length
    ? "Send each friend one of these links. Opening a link joins the game as that player."
    : "These links work on this machine only. For friends on your network, start busenv play with --host 0.0.0.0.";
  const rows = links.seats.flatMap((path, seat) =>
    path ? [linkRow([seatBadge(seat), ` ${seats[seat].name}`], base + path)] : []);
  rows.push(linkRow(["Spectators can watch, but not play"], base + links.spectator));
  document.getElementById("links-list").replaceChildren(...rows);
  dialog.showModal();
}

function linkRow(label, address) {
  const row = element("div", "", "link"), field = element("input"), copy = element("button", "Copy");
  const caption = element("label");
  field.value = address;
  field.readOnly = true;
  field.onfocus = () => field.select();
  caption.append(...label, field);
  copy.type = "button";
  copy.onclick = async () => {
    field.select();
    try {
      await navigator.clipboard.writeText(address);
    } catch {
      document.execCommand("copy");  // pages without https have no clipboard
    }
    copy.textContent = "Copied";
  };
  row.append(caption, copy);
  return row;
}
