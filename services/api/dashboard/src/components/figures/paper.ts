// A figure as a file that stands alone: styles as attributes, a light ground, title and source.

import { drawing } from "../../lib/dom";
import { fixed, label, TEXT_PX, type Figure } from "./figure";
import { textWidth } from "./labels";

const WIDTH = 960;
const MARGIN = 24;
const TITLE_PX = 20;
const LINE_PX = 17;
const PNG_SCALE = 2;

/** The styles that a file keeps, with what SVG has without them. */
const INHERITED: Record<string, string> = {
  fill: "rgb(0, 0, 0)",
  "fill-opacity": "1",
  stroke: "none",
  "stroke-opacity": "1",
  "stroke-width": "1px",
  "stroke-dasharray": "none",
  "stroke-linecap": "butt",
  "stroke-linejoin": "miter",
  "font-family": "",
  "font-size": "",
  "font-weight": "400",
  "font-style": "normal",
};
/** What is no character of XML. */

const UNWRITABLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g;

/** The text of an SVG file. */
export function svgText(figure: Figure): string {
  const svg = onPaper(figure);
  // Styles are known of what the page holds; the light ones hold below `on-paper`.
  const holder = document.createElement("div");
  holder.className = "on-paper visually-hidden";
  holder.ariaHidden = "true";
  holder.append(svg);
  document.body.append(holder);
  try {
    inlineStyles(svg, null);
  } finally {
    holder.remove();
  }
  cleaned(svg);
  return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(svg)}\n`;
}

/** The picture in twice its size, for slides and texts. */
export async function pngBlob(figure: Figure): Promise<Blob> {
  const text = svgText(figure);
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = image.naturalWidth * PNG_SCALE;
  canvas.height = image.naturalHeight * PNG_SCALE;
  const context = canvas.getContext("2d");
  context?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => {
      if (blob) resolve(blob);
      else reject(new Error("this browser makes no PNG"));
    });
  });
}

function onPaper({ title, about, source, draw }: Figure): SVGSVGElement {
  const inner = WIDTH - 2 * MARGIN;
  const { height, marks } = draw(inner);
  const lines = source.flatMap((each) => wrapped(each, inner));
  const top = MARGIN + TITLE_PX + 16;
  const whole = top + height + 14 + lines.length * LINE_PX + MARGIN / 2;
  const size = { width: WIDTH, height: fixed(whole), viewBox: `0 0 ${WIDTH} ${fixed(whole)}` };
  const place = `translate(${MARGIN} ${top})`;
  return drawing(
    "svg",
    { ...size, class: "chart", role: "img" },
    drawing("title", {}, title),
    drawing("desc", {}, `${about} ${source.join(" ")}`),
    drawing("rect", { width: "100%", height: "100%", class: "ground" }),
    label(title, MARGIN, MARGIN + TITLE_PX / 2, "start", "title"),
    drawing("g", { transform: place }, ...marks),
    ...lines.map((text, at) =>
      label(text, MARGIN, top + height + 14 + (at + 0.5) * LINE_PX, "start", "source"),
    ),
  );
}

function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    const longer = line ? `${line} ${word}` : word;
    if (line && textWidth(longer, TEXT_PX) > width) {
      lines.push(line);
      line = word;
    } else line = longer;
  }
  return line ? [...lines, line] : lines;
}

/** Writes the styles of an element and of all within as attributes, where they differ from those around. */
function inlineStyles(node: Element, around: CSSStyleDeclaration | null): void {
  const style = getComputedStyle(node);
  if (style.display === "none") {
    node.remove();
    return;
  }
  for (const child of [...node.children]) inlineStyles(child, style);
  if (node instanceof SVGTitleElement || node instanceof SVGDescElement) return;
  for (const [name, unset] of Object.entries(INHERITED)) {
    const value = style.getPropertyValue(name);
    if (value !== (around?.getPropertyValue(name) ?? unset)) writeStyle(node, name, value);
  }
  if (style.opacity !== "1") node.setAttribute("opacity", style.opacity);
}

/** Other programs read neither `rgba()` nor `color()`: both become six digits and an opacity. */
function writeStyle(node: Element, name: string, value: string): void {
  if (name !== "fill" && name !== "stroke") {
    node.setAttribute(name, value.replaceAll('"', "'"));
    return;
  }
  const [red, green, blue, alpha = 1] = (value.match(/[\d.e-]+/g) ?? []).map(Number);
  if (red === undefined || green === undefined || blue === undefined) {
    node.setAttribute(name, value);
    return;
  }
  const whole = value.startsWith("color(") ? 255 : 1;
  const digits = [red, green, blue].map((each) =>
    Math.round(each * whole)
      .toString(16)
      .padStart(2, "0"),
  );
  node.setAttribute(name, alpha === 0 ? "none" : `#${digits.join("")}`);
  if (alpha > 0 && alpha < 1) node.setAttribute(`${name}-opacity`, String(alpha));
}

/** Leaves what a file shows: no links, which lead nowhere from a file, and no classes. */
function cleaned(svg: SVGSVGElement): void {
  for (const link of svg.querySelectorAll("a")) {
    const told = link.getAttribute("aria-label") ?? "";
    const group = drawing("g", {}, drawing("title", {}, told), ...link.childNodes);
    for (const name of [...Object.keys(INHERITED), "opacity"]) {
      const value = link.getAttribute(name);
      if (value !== null) group.setAttribute(name, value);
    }
    link.replaceWith(group);
  }
  for (const node of [svg, ...svg.querySelectorAll("*")]) {
    for (const { name } of [...node.attributes]) {
      if (name === "class" || name.startsWith("data-")) node.removeAttribute(name);
    }
  }
  const texts = document.createTreeWalker(svg, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = texts.currentNode;
    node.nodeValue = (node.nodeValue ?? "").replace(UNWRITABLE, "\ufffd");
  }
}
