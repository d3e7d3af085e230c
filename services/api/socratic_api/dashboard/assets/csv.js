// The ranking as CSV (RFC 4180), figures unrounded.

function field(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  // A spreadsheet takes text that begins like this for a formula.
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const CONSUMPTION = [
  "total_cost_usd", "cost_known", "total_input_tokens", "total_visible_output_tokens",
  "total_reasoning_tokens", "mean_latency_ms",
];

export function asCsv(comparison) {
  const { vectors, dimensions, models } = comparison;
  const header = [
    "rank", "model_id", "model_name", "kind", "overall_score", "interval_low", "interval_high",
    "coverage", "total_runs", ...vectors,
    ...dimensions.flatMap((dimension) => [
      `${dimension}_runs`, `${dimension}_overall`, ...vectors.map((vector) => `${dimension}_${vector}`),
    ]),
    ...CONSUMPTION,
  ];
  const lines = models.map((model, index) => [
    index + 1, model.model_id, model.model_name, model.kind, model.overall_score,
    model.confidence_interval?.[0], model.confidence_interval?.[1], model.coverage, model.total_runs,
    ...vectors.map((vector) => model.vectors[vector].mean),
    ...dimensions.flatMap((dimension) => {
      const figures = model.dimensions[dimension] ?? {};
      return [figures.runs, figures.overall, ...vectors.map((vector) => figures[vector])];
    }),
    ...CONSUMPTION.map((figure) => model[figure]),
  ]);
  return [header, ...lines].map((line) => line.map(field).join(",")).join("\r\n") + "\r\n";
}
