// How a 95 % interval comes about: each step of the arithmetic with its numbers.

import type { IntervalSteps, PartStep, ScenarioStep } from "../lib/api_types";
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

function partRow({ name, weight, mean, jump, variance_below, variance_above }: PartStep) {
  const figure = (text: string) => element("td", { class: "figure" }, text);
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, element("bdi", {}, name)),
    figure(rough(weight)),
    figure(score(mean)),
    figure(rough(jump)),
    figure(rough(weight ** 2 * variance_below)),
    figure(rough(weight ** 2 * variance_above)),
  );
}

function partTable(parts: readonly PartStep[]): HTMLElement {
  const told = "How far the score may fall with each vector";
  const columns = ["Vector", "Weight w", "Mean", "Jump", "w² · below", "w² · above"];
  const heads = columns.map((text, at) =>
    element("th", { scope: "col", class: at ? "figure" : "" }, text),
  );
  const table = element(
    "table",
    { class: "plain" },
    element("caption", { class: "visually-hidden" }, told),
    element("thead", {}, element("tr", {}, ...heads)),
    element("tbody", {}, ...parts.map(partRow)),
  );
  return element(
    "div",
    { class: "scroll", role: "region", "aria-label": told, tabindex: 0 },
    table,
  );
}

/** The room for scenarios that nobody asked. */
function roomStep({ parts, jump, variance_below: below, variance_above: above }: IntervalSteps) {
  const of = (ways: string, value: number | null) =>
    formula(`κ · V + β · j · ${ways} = ${rough(value ?? 0)}`);
  if (jump !== null) {
    return step(
      `Three more scenarios might have failed, or done best. The jump of these scores is j = ${rough(jump)}: 1 for yes or no, and where all scenarios agree; near 0 for what changes by degrees. The least variance is `,
      of("m²", below),
      " below m, and ",
      of("(1 − m)²", above),
      " above.",
    );
  }
  return step(
    "Three more scenarios might have failed in one of the vectors, or done best. Each vector has its least variance below and above; the largest counts:",
    partTable(parts),
    `${rough(below ?? 0)} below m and ${rough(above ?? 0)} above.`,
  );
}

function quantileStep({ degrees_of_freedom: degrees, quantile }: IntervalSteps): HTMLElement {
  const told = `Student’s t with G − 1 = ${count(degrees ?? 0)} degrees of freedom has the quantile t = ${rough(quantile ?? 0)}.`;
  return step(told);
}

function wilsonStep({ mean, variance, effective_answers: n, quantile }: IntervalSteps) {
  const m = mean ?? 0;
  if (n === null) return step("The scenarios do not differ at all: Wilson’s interval is m alone.");
  const spread = m * (1 - m);
  const weight = (quantile ?? 0) ** 2 / n;
  const middle = (m + weight / 2) / (1 + weight);
  const reach = Math.sqrt(weight * spread + weight ** 2 / 4) / (1 + weight);
  return step(
    "So many independent yes-or-no answers would have this variance: ",
    formula(
      `n = m · (1 − m) / variance = ${rough(spread)} / ${rough(variance ?? 0)} = ${rough(n)}`,
    ),
    `. Wilson’s interval of them, with w = t² / n = ${rough(weight)}, is `,
    formula(`(${rough(m)} + w/2 ± √(w · ${rough(spread)} + w²/4)) / (1 + w)`),
    `: ${interval([middle - reach, middle + reach])}.`,
  );
}

function endsStep(steps: IntervalSteps): HTMLElement {
  const { mean, quantile, variance_below: below, variance_above: above, interval: ends } = steps;
  const [m, t] = [mean ?? 0, quantile ?? 0];
  const [down, up] = [t * Math.sqrt(below ?? 0), t * Math.sqrt(above ?? 0)];
  return step(
    "Each end is the further one of Wilson’s and of ",
    formula(`m − t · √below = ${rough(m)} − ${rough(down)}`),
    " or ",
    formula(`m + t · √above = ${rough(m)} + ${rough(up)}`),
    ", within 0 and 1, which is ",
    element("strong", {}, interval(ends)),
    ".",
  );
}

export function intervalSteps(steps: IntervalSteps): HTMLElement[] {
  const { runs, mean, squares, interval: ends, interval_note: note } = steps;
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
  const later = [varianceStep, roomStep, quantileStep, wilsonStep, endsStep];
  return [element("ol", { class: "steps" }, ...first, ...later.map((each) => each(steps)))];
}
