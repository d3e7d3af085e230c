// The form that starts an experiment: a configuration, its mistakes at their lines, and the answer.

import { ApiProblem, change, problemOf } from "../../lib/api";
import type { ConfigMistake, Submission } from "../../lib/api_types";
import { byId, element } from "../../lib/dom";
import { count, counted, dollars } from "../../lib/format";
import { keyGiven } from "./keys";

const EXAMPLE = `{
  "name": "first look",
  "models": [
    "reference/socratic",
    {"id": "reference/lecturer", "options": {"latency_ms": 200}}
  ],
  "repeats": 3
}`;

/** Starts experiments; `started` gets the id of each. */
export function connectStart(started: (experiment: string) => void): void {
  const config = byId("config", HTMLTextAreaElement);
  config.value = EXAMPLE;
  byId("start", HTMLFormElement).addEventListener("submit", (event) => {
    event.preventDefault();
    void submit(config, started);
  });
}

async function submit(
  config: HTMLTextAreaElement,
  started: (experiment: string) => void,
): Promise<void> {
  const button = byId("submit", HTMLButtonElement);
  button.disabled = true;
  config.removeAttribute("aria-invalid");
  try {
    const query = {
      retry_failed: String(byId("retry-failed", HTMLInputElement).checked),
      fresh: String(byId("fresh", HTMLInputElement).checked),
    };
    const answer = await change("POST", "/api/experiments", query, config.value, keyGiven());
    byId("mistakes").replaceChildren(...accepted(answer));
    if (!answer.notes.length) started(answer.experiment_id);
  } catch (error) {
    byId("mistakes").replaceChildren(...refused(error, config));
    if (error instanceof ApiProblem && error.mistakes.length) config.ariaInvalid = "true";
  } finally {
    button.disabled = false;
  }
}

function accepted(answer: Submission): HTMLElement[] {
  const { experiment_id: id, requested, planned, reused, most_cost_usd: most } = answer;
  const runs = requested === null ? "being requested" : `${count(requested)} requested`;
  const again = reused ? `, ${count(reused)} with answers of other experiments` : "";
  const cost = most ? ` At most it costs ${dollars(most)}.` : "";
  const link = element("a", { href: `experiments.html?experiment=${encodeURIComponent(id)}` }, id);
  const told = `: ${counted(planned, "run")}, ${runs}${again}.${cost}`;
  return [
    element("p", { class: "notice" }, "Started ", link, told),
    ...answer.notes.map((note) => element("p", { class: "notice" }, note)),
  ];
}

function refused(error: unknown, config: HTMLTextAreaElement): HTMLElement[] {
  const mistakes = error instanceof ApiProblem ? error.mistakes : [];
  if (!mistakes.length) return [element("p", { class: "notice" }, problemOf(error))];
  const heading = `${counted(mistakes.length, "mistake")}: nothing was started.`;
  return [
    element("p", { class: "notice" }, heading),
    element("ol", { class: "mistakes" }, ...mistakes.map((each) => mistake(each, config))),
  ];
}

function mistake(
  { place, line, problem }: ConfigMistake,
  config: HTMLTextAreaElement,
): HTMLElement {
  const where = place.replace(/^configuration /u, "");
  if (line === null) return element("li", {}, `${where}: ${problem}`);
  const button = element("button", { type: "button" }, where);
  button.addEventListener("click", () => {
    selectLine(config, line);
  });
  return element("li", {}, button, ` ${problem}`);
}

function selectLine(config: HTMLTextAreaElement, line: number): void {
  const lines = config.value.split("\n");
  const start = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
  config.focus();
  config.setSelectionRange(start, start + (lines[line - 1]?.length ?? 0));
  const height = config.scrollHeight / Math.max(1, lines.length);
  config.scrollTop = Math.max(0, (line - 3) * height);
}
