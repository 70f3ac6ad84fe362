// The list of moves: the line that is shown, and beside it the branches that lead off.

import { element, markMove, seatBadge } from "/static/page.js";

const nodes = new Map(), children = new Map();  // the tree, by id of a node
const steps = document.getElementById("steps");
let written = [];  // what is in the list: by ply, the node with what is said of it

export function forgetMoves() {
  nodes.clear();
  children.clear();
  written = [];
  steps.replaceChildren();
}

export function learnMoves(entries) {
  for (const node of entries) {
    if (nodes.has(node.id)) continue;
    nodes.set(node.id, node);
    if (node.parent === null) continue;
    if (!children.has(node.parent)) children.set(node.parent, []);
    children.get(node.parent).push(node.id);
  }
}

export function nodeOf(id) { return nodes.get(id); }

function pathTo(id) {
  const path = [];
  for (let at = id; at !== null && at !== undefined; at = nodes.get(at).parent) path.unshift(at);
  return path;
}

/** The line through a node: the line of the game if it is on it; else on along first children. */
export function lineThrough(id, line) {
  if (line.includes(id)) return line;
  const path = pathTo(id);
  for (let next = children.get(id)?.[0]; next !== undefined; next = children.get(next)?.[0])
    path.push(next);
  return path;
}

/** Write a line. shown: the node on the picture; stands: where the game stands. */
export function writeMoves(line, shown, stands) {
  const wanted = line.map((id) => {
    const node = nodes.get(id), others = (children.get(node.parent) ?? []).filter((k) => k !== id);
    return `${id} ${others.join()}`;
  });
  let same = 0;
  while (same < written.length && written[same] === wanted[same]) same++;
  while (steps.children.length > same) steps.lastChild.remove();
  for (let k = same; k < line.length; k++) steps.append(step(line, k));
  written = wanted;
  const end = line.indexOf(stands);
  line.forEach((_, k) => steps.children[k].classList.toggle("ahead", end >= 0 && k > end));
  markMove(steps.children[line.indexOf(shown)]?.querySelector(".row"));
}

function step(line, k) {
  const node = nodes.get(line[k]), made = element("div");
  made.append(moveButton(node, "row"));
  for (const other of children.get(node.parent) ?? []) {
    if (other === node.id) continue;
    const branch = moveButton(nodes.get(other), "branch"), length = lengthOf(other);
    branch.append(` (${length} ${length === 1 ? "move" : "moves"})`);
    made.append(branch);
  }
  const before = k ? nodes.get(line[k - 1]).round : -1;
  if (node.round !== before)
    made.append(element("h3", node.round ? `Round ${node.round}` : "Setup"));
  return made;
}

function moveButton(node, name) {
  const button = element("button", "", `${name}${node.forced ? " forced" : ""}`);
  button.dataset.node = node.id;
  if (node.parent === null) button.textContent = node.words;
  else button.append(name === "branch" ? "or " : `${node.ply}. `, seatBadge(node.seat), ` ${node.words}`);
  return button;
}

function lengthOf(id) {
  let longest = 1;
  for (const child of children.get(id) ?? []) longest = Math.max(longest, 1 + lengthOf(child));
  return longest;
}
