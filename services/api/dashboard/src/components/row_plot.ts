// The drawing of a row: a share as a dot with its interval as a line, from 0 to 1.

import type { ModelFigures } from "../lib/api_types";
import { drawing } from "../lib/dom";

interface Drawn {
  value: number | null;
  interval: readonly [number, number] | null;
  kind: ModelFigures["kind"];
  /** Where grid lines stand. */
  ticks: readonly number[];
  /** A share to compare the row with. */
  level?: number | null;
}

export function rowPlot({ value, interval, kind, ticks, level = null }: Drawn): SVGSVGElement {
  const at = (share: number) => `${share * 100}%`;
  const upright = (share: number, look: string) =>
    drawing("line", { class: look, x1: at(share), x2: at(share), y1: 0, y2: "100%" });
  const middle = { y1: "50%", y2: "50%" };
  return drawing(
    "svg",
    { "aria-hidden": "true", focusable: "false" },
    ...ticks.map((tick) => upright(tick, "grid")),
    level === null ? null : upright(level, "level"),
    interval &&
      drawing("line", {
        class: `whisker ${kind}`,
        x1: at(interval[0]),
        x2: at(interval[1]),
        ...middle,
      }),
    value === null
      ? null
      : drawing("circle", { class: `dot ${kind}`, cx: at(value), cy: "50%", r: 5 }),
  );
}
