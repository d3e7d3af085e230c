// The drawing of a difference: a dot with its interval on an axis from -1.0 to 1.0.

import { drawing } from "../../lib/dom";

export const TICKS = [-1, -0.5, 0, 0.5, 1];

function share(difference: number): string {
  return `${((difference + 1) / 2) * 100}%`;
}

/** `hollow` where a reference tutor takes part. */
export function differencePlot(
  difference: number | null,
  interval: [number, number] | null,
  hollow: boolean,
): SVGSVGElement {
  const kind = hollow ? "reference" : "model";
  const grid = TICKS.map((tick) =>
    drawing("line", {
      class: tick === 0 ? "grid zero" : "grid",
      x1: share(tick),
      x2: share(tick),
      y1: 0,
      y2: "100%",
    }),
  );
  const whisker =
    interval &&
    drawing("line", {
      class: `whisker ${kind}`,
      x1: share(interval[0]),
      x2: share(interval[1]),
      y1: "50%",
      y2: "50%",
    });
  const dot =
    difference === null
      ? null
      : drawing("circle", { class: `dot ${kind}`, cx: share(difference), cy: "50%", r: 5 });
  return drawing("svg", { "aria-hidden": "true", focusable: "false" }, ...grid, whisker, dot);
}
