// How a 95 % interval comes about: each step of the arithmetic with its numbers.

import type { IntervalSteps, ScenarioStep } from "../lib/api_types";
import { element } from "../lib/dom";
import { count, counted, interval, score, signed } from "../lib/format";

/** A figure on its way: three digits that say something. */
function rough(value: number): string {
  if (value === 0) return "0";
  const digits = value >= 1000 ? value.toFixed(0) : value.toPrecision(3);
  return digits.includes("e") ? Number(digits).toExponential(2) : digits;
}

function step(...content: (Node | string)[]): HTMLElement {
  return element("li", {}, ...content);
}

function formula(text: string): HTMLElement {
  return element("code", { class: "arithmetic" }, text);
}

function clusterRow({ scenario, runs, mean, residual }: ScenarioStep): HTMLElement {
  const figure = (text: string) => element("td", { class: "figure" }, text);
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, element("bdi", {}, scenario)),
    figure(count(runs)),
    figure(score(mean)),
    figure(signed(residual)),
    figure(rough(residual ** 2)),
  );
}

function clusterTable(steps: IntervalSteps): HTMLElement {
  const heading = (text: string, kind = "figure") =>
    element("th", { scope: "col", class: kind }, text);
  const head = element(
    "tr",
    {},
    heading("Scenario", ""),
    heading("Runs"),
    heading("Mean"),
    heading("Sum − runs · m"),
    heading("Squared"),
  );
  const table = element(
    "table",
    { class: "plain" },
    element("caption", { class: "visually-hidden" }, "What each scenario adds"),
    element("thead", {}, head),
    element("tbody", {}, ...steps.scenarios.map(clusterRow)),
  );
  const region = { role: "region", "aria-label": "What each scenario adds", tabindex: 0 };
  return element("div", { class: "scroll", ...region }, table);
}

function varianceStep({
  scenarios,
  runs,
  squares,
  variance,
  standard_error: error,
}: IntervalSteps) {
  const groups = scenarios.length;
  const sum = `${groups}/${groups - 1} · ${rough(squares ?? 0)} / ${count(runs)}²`;
  return step(
    "The variance of the mean, with each scenario as one cluster: ",
    formula(`${sum} = ${rough(variance ?? 0)}`),
    `. Its root, ${rough(error ?? 0)}, is the standard error.`,
  );
}

function answersStep({ mean, variance, effective_answers: n, scenarios }: IntervalSteps) {
  const spread = (mean ?? 0) * (1 - (mean ?? 0));
  if (!spread) {
    const told = `All runs score ${score(mean)}, so each scenario counts as one answer: n = ${scenarios.length}.`;
    return step(told);
  }
  return step(
    "So many independent yes-or-no answers would have this variance: ",
    formula(
      `n = m · (1 − m) / variance = ${rough(spread)} / ${rough(variance ?? 0)} = ${rough(n ?? 0)}`,
    ),
    ".",
  );
}

function quantileStep(steps: IntervalSteps): HTMLElement {
  const { scenarios, excess_kurtosis: kurtosis, degrees_of_freedom: degrees, quantile } = steps;
  const groups = scenarios.length;
  const less = kurtosis
    ? `, for tails of k = ${rough(kurtosis)}: 2 / (2 / ${groups - 1} + ${rough(kurtosis)} / ${groups})`
    : "";
  const told = `Student’s t with ${rough(degrees ?? 0)} degrees of freedom${less} has the quantile t = ${rough(quantile ?? 0)}.`;
  return step(told);
}

function wilsonStep({ mean, effective_answers: n, quantile, interval: ends }: IntervalSteps) {
  const [m, weight] = [mean ?? 0, (quantile ?? 0) ** 2 / (n ?? 1)];
  const inside = `(${rough(m)} + w/2 ± √(w · ${rough(m * (1 - m))} + w²/4)) / (1 + w)`;
  return step(
    `Wilson’s interval, with w = t² / n = ${rough(weight)}: `,
    formula(inside),
    ", which is ",
    element("strong", {}, interval(ends)),
    ".",
  );
}

export function intervalSteps(steps: IntervalSteps): HTMLElement[] {
  const { runs, mean, scenarios, squares, interval: ends, interval_note: note } = steps;
  if (mean === null) return [element("p", {}, note ?? "There is no score.")];
  const told = `The mean m of the ${counted(runs, "run")} is ${score(mean)}.`;
  const first = [
    step(told),
    step(
      "Each scenario is one cluster. Its sum, less its runs times m, is squared:",
      clusterTable(steps),
      `The squares add up to ${rough(squares ?? 0)}.`,
    ),
  ];
  if (ends === null) {
    return [element("ol", { class: "steps" }, ...first), element("p", {}, note ?? "")];
  }
  const later =
    steps.effective_answers === null
      ? [
          step(
            `The ${scenarios.length} scenarios do not differ at all, so the interval is the mean alone.`,
          ),
        ]
      : [varianceStep(steps), answersStep(steps), quantileStep(steps), wilsonStep(steps)];
  return [element("ol", { class: "steps" }, ...first, ...later)];
}
