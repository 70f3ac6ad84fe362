// The list of moves: one variation of the game tree, and the branches that leave it.

import { element, markMove, seatBadge } from "/static/page.js";

const nodes = new Map(), children = new Map();  // the tree, by node id
const list = document.getElementById("steps");
let keys = [];  // identify the rows of the list by their node and its siblings

// The panels above the list resize it; the move on display stays in sight.
new ResizeObserver(() => markMove(list.querySelector("[aria-current]")))
  .observe(document.getElementById("moves"));

export function clearMoves() {
  nodes.clear();
  children.clear();
  keys = [];
  list.replaceChildren();
}

export function addMoves(entries) {
  for (const node of entries) {
    nodes.set(node.id, node);
    if (node.parent === null) continue;
    if (!children.has(node.parent)) children.set(node.parent, []);
    children.get(node.parent).push(node.id);
  }
}

export function getNode(id) { return nodes.get(id); }

/** A variation through a node: the given one if it contains the node, else first children. */
export function variationThrough(id, variation) {
  if (variation.includes(id)) return variation;
  const path = [];
  for (let node = id; node !== null; node = nodes.get(node).parent) path.unshift(node);
  for (let next = children.get(id)?.[0]; next !== undefined; next = children.get(next)?.[0])
    path.push(next);
  return path;
}

/** Show a variation. drawn: the node on the drawing; current: the game's node. */
export function showMoves(variation, drawn, current) {
  const newKeys = variation.map((id) => [id, ...siblings(id)].join());
  let same = 0;
  while (same < keys.length && keys[same] === newKeys[same]) same++;
  while (list.children.length > same) list.lastChild.remove();
  for (let k = same; k < variation.length; k++) list.append(moveRow(variation, k));
  keys = newKeys;
  const end = variation.indexOf(current);
  variation.forEach((_, k) => list.children[k].classList.toggle("ahead", end >= 0 && k > end));
  markMove(list.children[variation.indexOf(drawn)]?.querySelector(".row"));
}

function siblings(id) {
  return (children.get(nodes.get(id).parent) ?? []).filter((other) => other !== id);
}

function moveRow(variation, k) {
  const node = nodes.get(variation[k]), row = element("div");
  row.append(moveButton(node, "row"));
  for (const other of siblings(node.id)) {
    const branch = moveButton(nodes.get(other), "branch"), length = branchLength(other);
    branch.append(` (${length} ${length === 1 ? "move" : "moves"})`);
    row.append(branch);
  }
  if (!k || node.round !== nodes.get(variation[k - 1]).round)
    row.append(element("h3", node.round ? `Round ${node.round}` : "Setup"));
  return row;
}

function moveButton(node, name) {
  const button = element("button", "", `${name}${node.forced ? " forced" : ""}`);
  button.dataset.node = node.id;
  if (node.parent === null) button.textContent = node.text;
  else button.append(name === "branch" ? "or " : `${node.ply}. `, seatBadge(node.seat), ` ${node.text}`);
  return button;
}

function branchLength(id) {
  return 1 + Math.max(0, ...(children.get(id) ?? []).map(branchLength));
}
