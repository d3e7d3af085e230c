// What a figure is: marks that fit a width, with the words that a file needs to stand alone.

import { drawing } from "../../lib/dom";

export interface Drawing {
  height: number;
  marks: SVGElement[];
  /** How many names have no room. */
  unnamed?: number;
}

export interface Figure {
  /** The name of a file, without its ending. */
  file: string;
  title: string;
  /** What the figure shows, for those who do not see it. */
  about: string;
  /** Where the figures come from: experiment, date, profile, conditions, version. */
  source: readonly string[];
  draw: (width: number) => Drawing;
}

export const TEXT_PX = 12;

type Anchor = "start" | "middle" | "end";

/** A text whose middle is at `y`. */
export function label(
  text: string,
  x: number,
  y: number,
  anchor: Anchor = "start",
  kind = "",
): SVGTextElement {
  const place = { x: fixed(x), y: fixed(y + 4), "text-anchor": anchor };
  return drawing("text", { ...place, class: `label ${kind}`.trim() }, text);
}

export function line(x1: number, y1: number, x2: number, y2: number, kind: string): SVGLineElement {
  const ends = { x1: fixed(x1), y1: fixed(y1), x2: fixed(x2), y2: fixed(y2) };
  return drawing("line", { ...ends, class: kind });
}

export function path(points: readonly (readonly [number, number])[], kind: string): SVGPathElement {
  const d = points.map(([x, y], at) => `${at ? "L" : "M"}${fixed(x)} ${fixed(y)}`).join("");
  return drawing("path", { d, class: kind });
}

export function fixed(value: number): string {
  return String(Math.round(value * 10) / 10);
}

/** The figure in a page, as wide as its frame; its marks may be links. */
export function svgOf({ about }: Figure, { height, marks }: Drawing, width: number): SVGSVGElement {
  const size = { width, height: fixed(height), viewBox: `0 0 ${width} ${fixed(height)}` };
  return drawing("svg", { ...size, class: "chart", role: "group", "aria-label": about }, ...marks);
}
