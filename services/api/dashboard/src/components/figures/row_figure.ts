// Rows of dots with intervals on one axis: the ranking, and the differences of two tutors.

import { drawing } from "../../lib/dom";
import { fixed, label, line, TEXT_PX, type Drawing } from "./figure";
import { textWidth } from "./labels";
import { linear } from "./scales";

export interface FigureRow {
  /** What stands before the name, such as ranks. */
  place: string;
  name: string;
  value: number | null;
  interval: [number, number] | null;
  /** The value and its interval as text. */
  text: string;
  between: string;
  isHollow: boolean;
}

export interface Rows {
  rows: readonly FigureRow[];
  low: number;
  high: number;
  ticks: readonly number[];
  /** An interval to compare the rows with. */
  band: [number, number] | null;
  /** The headings of place, name, value and interval. */
  headings: readonly [string, string, string, string];
}

const ROW = 26;
const HEAD = 44;
const GAP = 14;
const LEAST_PLOT = 160;

export function drawRows({ rows, low, high, ticks, band, headings }: Rows, width: number): Drawing {
  const widest = (texts: string[]) =>
    Math.max(0, ...texts.map((text) => textWidth(text, TEXT_PX, 600)));
  const places = widest([headings[0], ...rows.map(({ place }) => place)]);
  const texts = widest([headings[2], ...rows.map(({ text }) => text)]);
  const between = widest([headings[3], ...rows.map(({ between: each }) => each)]);
  const right = width - between - GAP - texts - 2 * GAP;
  const nameAt = places ? places + GAP : 0;
  const names = widest([headings[1], ...rows.map(({ name }) => name)]);
  const left = Math.min(nameAt + names + 1.5 * GAP, right - LEAST_PLOT);
  const x = linear(low, high, left, right, ticks.length);
  const bottom = HEAD + rows.length * ROW;
  const ends = { text: width - between - GAP, between: width };
  return {
    height: bottom + 4,
    marks: [
      label(headings[0], places, HEAD - 16, "end", "quiet"),
      label(headings[1], nameAt, HEAD - 16, "start", "quiet"),
      label(headings[2], ends.text, HEAD - 16, "end", "quiet"),
      label(headings[3], ends.between, HEAD - 16, "end", "quiet"),
      ...bandMark(band, x.at, bottom),
      ...ticks.flatMap((tick) => [
        line(
          x.at(tick),
          HEAD - 4,
          x.at(tick),
          bottom,
          tick === 0 && low < 0 ? "grid zero" : "grid",
        ),
        label(tick.toFixed(1).replace("-", "\u2212"), x.at(tick), HEAD - 16, "middle", "quiet"),
      ]),
      ...rows.flatMap((row, at) => {
        const y = HEAD + (at + 0.5) * ROW;
        const kind = row.isHollow ? "reference" : "model";
        const own = row.interval;
        const spot = { cx: fixed(x.at(row.value ?? 0)), cy: fixed(y), r: 5 };
        return [
          label(row.place, places, y, "end", "quiet"),
          label(row.name, nameAt, y),
          ...(own ? [line(x.at(own[0]), y, x.at(own[1]), y, `whisker in-row ${kind}`)] : []),
          ...(row.value === null ? [] : [drawing("circle", { class: `dot ${kind}`, ...spot })]),
          label(row.text, ends.text, y, "end", "strong"),
          label(row.between, ends.between, y, "end", "quiet"),
        ];
      }),
    ],
  };
}

function bandMark(
  band: [number, number] | null,
  at: (value: number) => number,
  bottom: number,
): SVGElement[] {
  if (!band) return [];
  const [from, to] = [at(band[0]), at(band[1])];
  const size = { x: fixed(from), width: fixed(to - from), y: HEAD - 4, height: bottom - HEAD + 4 };
  return [drawing("rect", { class: "band", ...size })];
}
