// Two tutors compared, as a file: the difference of each figure, and of each scenario.

import type { ModelDifference } from "../../lib/api_types";
import { interval, shortened, signed } from "../../lib/format";
import { TICKS } from "../comparison/difference_plot";
import type { Figure } from "./figure";
import { drawRows, type FigureRow } from "./row_figure";
import { sourceOf } from "./source";

const NAME_LIMIT = 44;

export function differenceFigure(
  difference: ModelDifference,
  verdict: string,
  isHollow: boolean,
): Figure {
  const { first, second, figures, by_scenario: scenarios, profile, version } = difference;
  const row = (name: string, value: number | null, bounds: [number, number] | null): FigureRow => ({
    place: "",
    name: shortened(name, NAME_LIMIT),
    value,
    interval: bounds,
    text: signed(value),
    between: bounds ? interval(bounds) : "",
    isHollow,
  });
  const rows = [
    ...figures.map((each) => row(each.name, each.difference, each.interval)),
    ...scenarios.map((each) => row(each.scenario_id, each.difference, null)),
  ];
  const sides = first.experiment_id === second.experiment_id ? [first] : [first, second];
  return {
    file: `socratic-bench-compare-${first.experiment_id}`,
    title: `${first.model_name} less ${second.model_name}`,
    about: verdict,
    source: [
      verdict,
      "Dots are differences, the first less the second; lines are 95 % intervals, paired by scenario. One scenario has too few runs for an interval. Hollow: a reference tutor takes part.",
      ...sourceOf(sides, [profile], version),
    ],
    draw: (width) =>
      drawRows(
        {
          rows,
          low: -1,
          high: 1,
          ticks: TICKS,
          band: null,
          headings: ["", "Score, and scenarios", "Difference", "95 % interval"],
        },
        width,
      ),
  };
}
