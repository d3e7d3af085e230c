// What two tutors said to one student, side by side, with every mark in place.

import { read } from "../../lib/api";
import type {
  DescribedProfile,
  ModelDifference,
  RunSummary,
  RunTurn,
  Side,
} from "../../lib/api_types";
import { element } from "../../lib/dom";
import { count, score } from "../../lib/format";
import { runPage } from "../../lib/links";
import { plainText } from "../transcript/plain_text";
import { scoredText } from "../transcript/scored_text";

const MOST_RUNS = "200";

interface Said {
  side: Side;
  run: RunSummary | null;
  turns: RunTurn[];
}

/** Reads one repeat of a scenario by both tutors. Raises ApiProblem where the API has a problem. */
export async function readBoth(
  difference: ModelDifference,
  scenario: string,
  repeat: number,
): Promise<[Said, Said, number]> {
  const [one, other] = await Promise.all([
    runsOf(difference.first, scenario, difference.profile),
    runsOf(difference.second, scenario, difference.profile),
  ]);
  const [first, second] = await Promise.all([
    saidIn(difference.first, one, repeat, difference.profile),
    saidIn(difference.second, other, repeat, difference.profile),
  ]);
  return [first, second, Math.max(one.length, other.length)];
}

async function runsOf(side: Side, scenario: string, profile: string): Promise<RunSummary[]> {
  const fields = { experiment: side.experiment_id, model: side.model_id, scenario, profile };
  const page = (await read("/api/detailed-results", { ...fields, limit: MOST_RUNS })).data;
  return page?.runs ?? [];
}

async function saidIn(
  side: Side,
  runs: RunSummary[],
  repeat: number,
  profile: string,
): Promise<Said> {
  const run = runs.find((each) => each.repeat === repeat) ?? null;
  if (!run?.turns) return { side, run, turns: [] };
  return { side, run, turns: await turnsFrom(0, { run_id: run.run_id, profile }) };
}

/** Reads page after page: one ends early where turns are long. */
async function turnsFrom(
  first: number,
  of: Record<"run_id" | "profile", string>,
): Promise<RunTurn[]> {
  const fields = { ...of, limit: "100", offset: String(first) };
  const page = (await read("/runs/{run_id}/turns", fields)).data;
  const next = page?.next_offset ?? null;
  const later = next === null ? [] : await turnsFrom(next, of);
  return [...(page?.turns ?? []), ...later];
}

export function sideBySide(
  first: Said,
  second: Said,
  profile: DescribedProfile | null,
): HTMLElement[] {
  const number = Math.max(first.turns.length, second.turns.length);
  const heads = element("div", { class: "pair heads" }, head(first), head(second));
  const turns = Array.from({ length: number }, (_, at) => {
    const [one, other] = [first.turns[at], second.turns[at]];
    const message = one?.student_message ?? other?.student_message ?? "";
    const student = element(
      "div",
      { class: "student" },
      element("h3", {}, number > 1 ? `Student, turn ${count(at + 1)}` : "Student"),
      element("div", { class: "said-text", dir: "auto" }, ...plainText(message)),
    );
    const answers = [one, other].map((turn, side) =>
      answer(turn, (side === 0 ? first : second).side.model_name, profile),
    );
    return element(
      "div",
      { class: "exchange" },
      student,
      element("div", { class: "pair" }, ...answers),
    );
  });
  return [heads, ...turns];
}

function head({ side, run }: Said): HTMLElement {
  const name = element("h3", {}, element("bdi", {}, side.model_name));
  if (!run) return element("div", {}, name, element("p", { class: "quiet" }, "No such run."));
  const failed = run.failure === null ? "" : `, failed: ${run.failure.kind}`;
  const told =
    run.turns > 0 || run.failure
      ? `${score(run.scores.overall ?? null)} overall${failed}, `
      : "not ended, ";
  const link = element("a", { href: runPage(run.run_id) }, "the run with its arithmetic");
  return element("div", {}, name, element("p", { class: "quiet" }, told, link));
}

function answer(
  turn: RunTurn | undefined,
  model: string,
  profile: DescribedProfile | null,
): HTMLElement {
  const whose = element("h4", {}, element("bdi", {}, model));
  if (!turn || turn.text === "") {
    const why = turn ? `The tutor said nothing (${turn.score.status}).` : "No response.";
    return element("div", { class: "answer" }, whose, element("p", { class: "quiet" }, why));
  }
  const parts = scoredText(turn.text, turn.score, profile);
  const attributes = { class: "said-text response long", dir: "auto", tabindex: 0, role: "region" };
  const text = element(
    "div",
    { ...attributes, "aria-label": `Response of ${model}` },
    ...parts.text,
  );
  whose.append(" ", element("span", { class: "quiet" }, score(turn.score.overall)));
  return element(
    "div",
    { class: "answer" },
    whose,
    text,
    element("ul", { class: "legend", "aria-label": "Marks" }, ...parts.legend),
  );
}
