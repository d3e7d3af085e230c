// One scenario: what the student says, what the figures are, and the responses to it.

import { problemOf, read } from "../../lib/api";
import type { AnalysedScenario, RunSummary } from "../../lib/api_types";
import { element, say } from "../../lib/dom";
import { UNKNOWN, count, counted, interval, score } from "../../lib/format";
import { runPage, scenarioAnchor } from "../../lib/links";
import { fact } from "../fact";
import { nameOf, signed, tells } from "./overview";

const LISTED = 200;

export function scenarioSection(
  experiment: string,
  profile: string,
  scenario: AnalysedScenario,
): HTMLElement {
  const { scenario_id: id, dimension, persona, aim, student_messages: messages } = scenario;
  const turns = scenario.turns > 1 ? `${dimension}, ${count(scenario.turns)} turns` : dimension;
  const isPlayed = messages.length < scenario.turns;
  return element(
    "section",
    { class: "scenario", id: scenarioAnchor(id), "aria-label": nameOf(scenario) },
    element("h2", { dir: "auto" }, nameOf(scenario)),
    element("p", { class: "quiet" }, element("span", { class: "identifier" }, id), ` · ${turns}`),
    element("ol", { class: "asked" }, ...messages.map(message)),
    element(
      "dl",
      { class: "facts" },
      ...(isPlayed ? [fact("Student", "a model says the further messages")] : []),
      ...(persona ? [fact("Who asks", element("bdi", {}, persona))] : []),
      ...(aim ? [fact("A Socratic answer", element("bdi", {}, aim))] : []),
      ...figures(scenario),
    ),
    responses(experiment, profile, scenario),
  );
}

function message(text: string): HTMLElement {
  return element("li", {}, element("blockquote", { dir: "auto", class: "said-text" }, text));
}

function figures({ mean, interval: between, discrimination, models }: AnalysedScenario): Node[] {
  const bounds = between ? ` (95 % ${interval(between)})` : "";
  const over = `, over ${counted(models, "tutor")}`;
  return [
    fact("Mean", mean === null ? UNKNOWN : `${score(mean)}${bounds}${over}`),
    ...(discrimination === null
      ? []
      : [fact("Tells apart", `${tells(discrimination)} (${signed(discrimination)})`)]),
  ];
}

/** The runs of the scenario, read when a person opens them. */
function responses(
  experiment: string,
  profile: string,
  { scenario_id: scenario, runs }: AnalysedScenario,
): Node {
  const told = element("p", { class: "quiet", role: "status" }, "Reading…");
  const list = element("ul", { class: "runs" });
  const summary = element("summary", {}, `Responses: ${counted(runs, "run")}`);
  const details = element("details", {}, summary, told, list);
  details.addEventListener("toggle", () => {
    if (details.open && !list.children.length)
      void fill({ experiment, profile, scenario }, list, told);
  });
  return details;
}

async function fill(
  chosen: Record<"experiment" | "profile" | "scenario", string>,
  list: HTMLElement,
  told: HTMLElement,
): Promise<void> {
  try {
    const query = { ...chosen, limit: String(LISTED) };
    const { data } = await read("/api/detailed-results", query);
    if (!data) return;
    const ended = data.runs.filter((run) => run.turns > 0 || run.failure);
    list.replaceChildren(...ended.map(run));
    const more = data.total > data.runs.length ? `The first ${count(data.runs.length)} runs.` : "";
    say(told, ended.length ? more : "None has ended yet.");
  } catch (error) {
    say(told, problemOf(error));
  }
}

function run(each: RunSummary): HTMLElement {
  const { model_id: model, repeat, scores, failure } = each;
  const outcome = failure ? failure.kind : score(scores.overall ?? null);
  const link = element("a", { href: runPage(each.run_id) }, element("bdi", {}, model));
  return element("li", {}, link, ` repeat ${repeat}: ${outcome}`);
}
