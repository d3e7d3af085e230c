// Building elements. Children that are text become text nodes: nothing is ever read as markup.

const SVG = "http://www.w3.org/2000/svg";

type Attributes = Record<string, string | number>;
type Child = Node | string | null;

function build<Built extends Element>(
  node: Built,
  attributes: Attributes,
  children: Child[],
): Built {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  node.append(...children.filter((child) => child !== null));
  return node;
}

export function element<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[Tag] {
  return build(document.createElement(tag), attributes, children);
}

export function drawing<Tag extends keyof SVGElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[Tag] {
  return build(document.createElementNS(SVG, tag), attributes, children);
}

/** The element of the page with this id, of this class. Raises TypeError where there is none. */
export function byId<Kind extends HTMLElement = HTMLElement>(
  id: string,
  kind: new () => Kind = HTMLElement as new () => Kind,
): Kind {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new TypeError(`the page has no ${kind.name} #${id}`);
  return found;
}

/** Sets the text of a node only if it changes, so that selections and screen readers rest. */
export function say(node: Node, text: string): void {
  if (node.textContent !== text) node.textContent = text;
}

/** Replaces the children of a node only if they change, so that focus and selections rest. */
export function fill(node: Element, ...children: (Node | string)[]): void {
  const next = node.cloneNode() as Element;
  next.append(...children);
  if (!next.isEqualNode(node)) node.replaceChildren(...next.childNodes);
}

export function toggle(node: HTMLElement, shown: boolean): void {
  if (node.hidden === shown) node.hidden = !shown;
}

/** A sentence as nodes: words between backticks are code. */
export function withCode(text: string): (HTMLElement | string)[] {
  return text.split("`").map((piece, place) => (place % 2 ? element("code", {}, piece) : piece));
}

/** A text without its sentences that name a command: a page has controls instead. */
function withoutCommands(text: string): string {
  const sentences = text.split(/(?<=[.!?]) (?=[A-Z])/);
  return sentences.filter((each) => !each.includes("`socratic-bench")).join(" ");
}

/** Shows one paragraph a text, or hides the node without any. Words between backticks are code. */
export function sayEach(node: HTMLElement, texts: readonly string[]): void {
  const shown = texts.map(withoutCommands).filter(Boolean);
  toggle(node, shown.length > 0);
  fill(node, ...shown.map((text) => element("p", {}, ...withCode(text))));
}
