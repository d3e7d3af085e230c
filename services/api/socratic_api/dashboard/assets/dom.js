// Building elements. Children that are text become text nodes: nothing is ever read as markup.

const SVG = "http://www.w3.org/2000/svg";

function build(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

export function element(tag, attributes = {}, ...children) {
  return build(document.createElement(tag), attributes, children);
}

export function drawing(tag, attributes = {}, ...children) {
  return build(document.createElementNS(SVG, tag), attributes, children);
}

export function byId(id) {
  return document.getElementById(id);
}

/** Sets the text of a node only if it changes, so that selections and screen readers rest. */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function toggle(node, shown) {
  if (node.hidden === shown) node.hidden = !shown;
}
