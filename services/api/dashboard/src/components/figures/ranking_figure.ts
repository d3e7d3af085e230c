// The ranking as a file: the rows that the page shows, in its order.

import type { View } from "../../lib/address";
import type { ModelComparison, ModelFigures } from "../../lib/api_types";
import { counted, interval, score, shortened } from "../../lib/format";
import { hasLeader, leaderOf, ordered, ranks } from "../../lib/models";
import type { Figure } from "./figure";
import { drawRows, type FigureRow } from "./row_figure";
import { citedOf, sourceOf } from "./source";

const NAME_LIMIT = 44;
const SCORE_TICKS = [0, 0.2, 0.4, 0.6, 0.8, 1];

function row(model: ModelFigures): FigureRow {
  const tag = model.kind === "model" ? "" : ` (${model.kind})`;
  return {
    place: ranks(model),
    name: shortened(model.model_name, NAME_LIMIT) + tag,
    value: model.overall_score,
    interval: model.confidence_interval,
    text: score(model.overall_score),
    between: interval(model.confidence_interval),
    isHollow: model.kind !== "model",
  };
}

export function rankingFigure(comparison: ModelComparison, view: View): Figure {
  const { models, baseline, experiments, profile, version, note, filtered } = comparison;
  const wanted = view.filter.trim().toLowerCase();
  const shown = [...ordered(models, view.order), ...(baseline ? [baseline] : [])].filter(
    ({ model_name: name, model_id: id, kind }) =>
      `${name} ${id} ${kind}`.toLowerCase().includes(wanted),
  );
  const leader = hasLeader(comparison) ? leaderOf(models) : null;
  const rows = shown.map(row);
  return {
    file: `socratic-bench-ranking-${experiments[0]?.experiment_id ?? "none"}`,
    title: "Overall score",
    about: `The overall score of ${counted(rows.length, "tutor")} with its 95 % interval, from 0.0 to 1.0.`,
    source: [
      "Dots are means, lines 95 % intervals, clustered by scenario; the band is the interval of the best model. Models that share ranks may differ by chance alone. Hollow: reference tutors and the baseline, which are no models.",
      ...(filtered ? [filtered.told] : []),
      ...(note ? [note] : []),
      ...sourceOf(experiments.map(citedOf), [profile], version),
    ],
    draw: (width) =>
      drawRows(
        {
          rows,
          low: 0,
          high: 1,
          ticks: SCORE_TICKS,
          band: leader?.confidence_interval ?? null,
          headings: ["#", "Tutor", "Score", "95 % interval"],
        },
        width,
      ),
  };
}
