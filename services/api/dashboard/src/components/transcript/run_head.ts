// The head of a run: whose it is, what it scored, the plan around it, and the runs beside it.

import type { RunContext, RunDetails, RunLink } from "../../lib/api_types";
import { byId, element, fill, say, toggle } from "../../lib/dom";
import { amount, count, counted, dollars, isolated, score, shortened } from "../../lib/format";
import { comparePage, experimentRanking, rankingPage, runPage } from "../../lib/links";
import { fact } from "../fact";
import { plainText } from "./plain_text";

const NO_CONTEXT = "The store no longer has the plan of this run.";

export function showRunHead(run: RunDetails): void {
  const { context } = run;
  const model = context?.model_name ?? run.model_id;
  const title = titleOf(run);
  fill(byId("title"), element("bdi", {}, title));
  document.title = `${title} · ${model} · Socratic Bench`;
  const back = element("a", { href: rankingPage(run.experiment_id, run.model_id) });
  back.append(element("bdi", {}, shortened(model, 60)));
  const ranking = element("a", { href: experimentRanking(run.experiment_id) }, "Ranking");
  fill(byId("crumbs"), ranking, " › ", back, ` › ${run.dimension} › `, scenarioOf(run));
  showSentence(run, model);
  toggle(byId("plan"), true);
  showPlan(run);
  showNeighbours(run, context);
  const profile = run.profile ? `Scored by ${run.profile} · ` : "";
  const experiment = context?.experiment_title ? `${isolated(context.experiment_title)} ` : "";
  const of = `experiment ${experiment}(${run.experiment_id})`;
  say(byId("provenance"), `${profile}run ${run.run_id} of ${of}`);
}

function titleOf({ context, scenario_id: id }: RunDetails): string {
  const title = context?.scenario.title ?? "";
  return title === "" ? id : title;
}

function scenarioOf(run: RunDetails): HTMLElement {
  return element("bdi", {}, run.scenario_id);
}

function showSentence(run: RunDetails, model: string): void {
  const { context, failure } = run;
  const of = context ? ` of ${count(context.repeats)}` : "";
  const reference = context?.kind === "reference" ? ", a reference tutor" : "";
  const name = element("strong", {}, element("bdi", {}, model));
  const sentence = element("span", {}, name, `${reference}, run ${count(run.repeat)}${of}: `);
  const overall = run.scores.overall ?? null;
  const planned = context?.scenario.turns ?? run.turns;
  const ended =
    run.turns < planned
      ? `${count(run.turns)} of ${counted(planned, "turn")}`
      : counted(run.turns, "turn");
  sentence.append(
    overall === null
      ? `no scored response in ${ended}.`
      : `${score(overall)} overall, the mean of ${counted(run.scored_turns, "scored response")} in ${ended}.`,
  );
  if (failure) {
    const attempts = counted(failure.attempts, "attempt");
    const at = `The run failed at turn ${failure.turn} after ${attempts}: ${failure.kind}`;
    sentence.append(` ${at}: `, element("bdi", {}, failure.message), ".");
  }
  fill(byId("summary"), sentence);
}

/** The plan stays as it is while a run grows, an opened prompt too; what it took changes. */
function showPlan(run: RunDetails): void {
  const node = byId("plan");
  const took = facts(run);
  const shown = node.querySelector(".took");
  if (shown && node.dataset.run === run.run_id) shown.replaceWith(took);
  else node.replaceChildren(...plan(run), took);
  node.dataset.run = run.run_id;
}

function facts(run: RunDetails): HTMLElement {
  const { context } = run;
  const simulated = context?.simulated_latency_ms ? " (simulated)" : "";
  const vectors = Object.entries(run.scores).filter(([name]) => name !== "overall");
  return element(
    "dl",
    { class: "facts took" },
    ...(run.turns > 1 ? vectors.map(([name, mean]) => fact(`Mean ${name}`, score(mean))) : []),
    fact("Latency", amount(run.total_latency_ms, "ms in all"), simulated),
    fact("Cost", run.total_cost_usd === null ? "unknown" : dollars(run.total_cost_usd)),
    fact("Attempts", count(run.attempts)),
    fact("Model", element("bdi", { class: "identifier" }, run.model_id)),
  );
}

function plan({ context }: RunDetails): HTMLElement[] {
  if (!context) return [element("p", { class: "quiet" }, NO_CONTEXT)];
  const { persona, aim } = context.scenario;
  const about = [
    ...(persona ? [fact("Student", element("bdi", {}, persona))] : []),
    ...(context.student ? [fact("Played by", element("bdi", {}, context.student))] : []),
    ...(aim ? [fact("Aim", element("bdi", {}, aim))] : []),
  ];
  return [
    ...(about.length ? [element("dl", { class: "facts about-scenario" }, ...about)] : []),
    systemPrompt(context),
  ];
}

function systemPrompt({ system_prompt: prompt }: RunContext): HTMLElement {
  const text = element("div", { class: "said-text", dir: "auto" }, ...plainText(prompt || "None."));
  return element("details", {}, element("summary", {}, "System prompt"), text);
}

function sideBySide(run: RunDetails, context: RunContext): HTMLElement[] {
  const other = context.next_model ?? context.previous_model;
  if (!other) return [];
  const address = comparePage(run.model_id, other.model_id, run.experiment_id, run.scenario_id);
  return [element("p", {}, element("a", { href: address }, "Side by side"))];
}

function showNeighbours(run: RunDetails, context: RunContext | null): void {
  toggle(byId("neighbours"), context !== null);
  if (!context) return;
  const scenario = (link: RunLink) => `${shortened(link.scenario_id, 30)}, run ${link.repeat}`;
  const model = (link: RunLink) => shortened(link.model_name, 30);
  fill(
    byId("neighbours"),
    pair("This tutor", context.previous, context.next, scenario),
    pair("This question", context.previous_model, context.next_model, model),
    ...sideBySide(run, context),
  );
}

function pair(
  title: string,
  previous: RunLink | null,
  next: RunLink | null,
  told: (link: RunLink) => string,
): HTMLElement {
  const link = (to: RunLink | null, rel: "prev" | "next") => {
    const word = rel === "prev" ? "previous" : "next";
    if (!to) return element("span", { class: "quiet" }, `no ${word}`);
    const name = element("bdi", {}, told(to));
    const parts = rel === "prev" ? ["← ", name] : [name, " →"];
    const full = `${word}: ${to.model_name}, ${to.scenario_id}, run ${to.repeat}`;
    return element(
      "a",
      { rel, href: runPage(to.run_id), "aria-label": full, title: full },
      ...parts,
    );
  };
  return element(
    "p",
    {},
    element("span", { class: "quiet" }, `${title}: `),
    link(previous, "prev"),
    " · ",
    link(next, "next"),
  );
}
