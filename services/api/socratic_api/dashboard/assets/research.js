// The ranking page: reads the API, shows what it says, and keeps it fresh.

import { readAddress, writeAddress } from "./address.js";
import { ApiProblem, read } from "./api.js";
import { asCsv } from "./csv.js";
import { byId, element, say, toggle } from "./dom.js";
import { clockTime, count, counted, day, interval, listed, percent, score, shortened } from "./format.js";
import { Ranking, anyCost, leaderOf, overlaps, skeleton } from "./ranking.js";

const RUNNING_MS = 2_000;
const RESTING_MS = 15_000;
const AWAY_MS = 5_000;
const FILTER_FROM = 10;
const STATES = {
  running: ["Running", ""],
  paused: ["Paused", " Resume it to go on."],
  cancelled: ["Cancelled", ""],
  overdue: ["Past the deadline", ""],
  out_of_budget: ["Out of budget", " Raise the budget and start it again to go on."],
};

let view = readAddress();
let comparison = null;
let states = new Map();
let etag = null;
let answeredAt = null;
let timer = null;
let round = 0;

const ranking = new Ranking(byId("rows"), (model) => {
  if (!view.open.delete(model)) view.open.add(model);
  writeAddress(view);
  showRanking();
});

function pending() {
  return comparison?.experiments.filter((each) => each.done < each.planned) ?? [];
}

/** How the experiments that are not done stand: at work, unless all of them have stopped for one reason. */
function standing() {
  const found = new Set(pending().map((each) => states.get(each.experiment_id)));
  const [only] = found.size === 1 ? found : [];
  return only in STATES ? only : "running";
}

function showSummary() {
  const { models, vectors } = comparison;
  const runs = models.reduce((sum, model) => sum + model.total_runs, 0);
  say(
    byId("summary"),
    models.length
      ? `How ${counted(models.length, "tutor")} answered in ${counted(runs, "run")}: every response is scored from 0.00 to 1.00 on ${listed(vectors)}.`
      : "How language models answer students: every response is scored from 0.00 to 1.00.",
  );
}

function showFinding() {
  const leader = leaderOf(comparison.models);
  const node = byId("finding");
  if (!leader) return say(node, "");
  const near = comparison.models.filter((model) => overlaps(model, leader)).length;
  const others = comparison.models.length - 1;
  const bounds = leader.confidence_interval ? ` (95 % ${interval(leader.confidence_interval)})` : "";
  const apart = near
    ? `The ${near === 1 ? "interval" : "intervals"} of ${counted(near, "other")} ${near === 1 ? "overlaps" : "overlap"} that: not clearly different on these runs.`
    : others && leader.confidence_interval ? "No other interval overlaps that." : "";
  const kind = leader.kind === "reference" ? ", a reference tutor," : comparison.models[0] === leader ? "" : ", the best model,";
  const told = `${leader.model_name}${kind} leads with ${score(leader.overall_score)}${bounds}. ${apart}`;
  if (node.textContent === told) return;
  node.replaceChildren(element("strong", {}, element("bdi", {}, leader.model_name)), told.slice(leader.model_name.length));
}

function showProgress() {
  const [planned, done] = ["planned", "done"].map((key) =>
    comparison.experiments.reduce((sum, each) => sum + each[key], 0));
  const [state, advice] = STATES[standing()];
  toggle(byId("progress"), pending().length > 0);
  byId("progress-bar").value = planned ? done / planned : 0;
  say(byId("progress-text"), `${state}: ${count(done)} of ${count(planned)} runs done (${percent(planned ? done / planned : 0)}).${advice}`);
}

function showProvenance() {
  const { experiments, profile } = comparison;
  toggle(byId("provenance"), experiments.length > 0);
  const one = experiments.length === 1 ? experiments[0] : null;
  say(
    byId("provenance"),
    one
      ? `Scored by ${profile} · experiment ${one.experiment_id}${one.occasion ? ` (${one.occasion})` : ""}, begun ${day(one.created_at)}`
      : `Scored by ${profile} · ${counted(experiments.length, "experiment")}`,
  );
}

function showUpdated() {
  const exact = answeredAt.toISOString();
  const time = element("time", { datetime: exact, title: exact }, clockTime(answeredAt));
  byId("updated").replaceChildren("Up to date as of ", time);
}

function showRanking() {
  if (!comparison) return;
  const empty = comparison.models.length === 0;
  const shown = ranking.show(comparison, view);
  byId("ranking").classList.remove("loading");
  toggle(byId("empty"), empty);
  for (const id of ["ranking", "reading", "download", "toolbar"]) toggle(byId(id), !empty);
  showOrder(anyCost(comparison.models));
  toggle(byId("copy"), !empty && Boolean(navigator.clipboard));
  toggle(byId("filter-choice"), comparison.models.length >= FILTER_FROM || view.filter !== "");
  toggle(byId("nothing-found"), !empty && shown === 0);
}

function showOrder(costs) {
  for (const id of ["cost-header", "order-choice", "about-costs"]) toggle(byId(id), costs);
  byId("ranking").classList.toggle("costs", costs);
  const order = costs && view.order ? `by cost, ${view.order} first` : "by overall score, best first";
  say(byId("caption"), `Tutors ${order}. Each row opens into dimensions and vectors.`);
}

function showAll() {
  showSummary();
  showFinding();
  toggle(byId("note"), Boolean(comparison.note));
  say(byId("note"), comparison.note ?? "");
  showProgress();
  showRanking();
  showProvenance();
}

function showAway(error) {
  const known = error instanceof ApiProblem && error.status < 500;
  document.body.classList.toggle("stale", Boolean(comparison) && !known);
  toggle(byId("away"), true);
  const since = answeredAt ? ` The figures below are those of ${clockTime(answeredAt)}.` : "";
  say(byId("away"), known ? error.message : `The API does not answer.${since} Trying again every ${AWAY_MS / 1000} seconds.`);
  if (!comparison) say(byId("summary"), known ? "There is nothing to show at this address." : "No figures yet.");
}

async function showChoices() {
  const { data } = await read("/api/experiments?limit=500");
  states = new Map(data.experiments.map((each) => [each.experiment_id, each.state]));
  const select = byId("experiment");
  toggle(byId("experiment-choice"), data.total > 1 || view.experiment !== "");
  const options = [
    element("option", { value: "" }, "newest of each tutor"),
    element("option", { value: "all" }, "all together"),
    ...data.experiments.map((each) => element(
      "option",
      { value: each.experiment_id, title: each.experiment_id },
      `${each.occasion ?? day(each.created_at)} · ${counted(each.models, "tutor")} · ${shortened(each.experiment_id, 14)}`,
    )),
  ];
  if (select.options.length !== options.length) select.replaceChildren(...options);
  select.value = view.experiment;
}

async function refresh() {
  clearTimeout(timer);
  const mine = (round += 1);
  let wait = RESTING_MS;
  try {
    const query = view.experiment ? `?experiment=${encodeURIComponent(view.experiment)}` : "";
    const answer = await read(`/api/model-comparison${query}`, etag);
    if (mine !== round) return;
    answeredAt = new Date();
    toggle(byId("away"), false);
    document.body.classList.remove("stale");
    if (answer.data) {
      ({ etag, data: comparison } = answer);
      showAll();
    }
    if (answer.data || pending().length) {
      await showChoices();
      showProgress();
    }
    showUpdated();
    if (pending().length && standing() !== "out_of_budget") wait = RUNNING_MS;
  } catch (error) {
    if (mine !== round) return;
    showAway(error);
    wait = AWAY_MS;
  }
  if (mine === round) timer = setTimeout(refresh, document.hidden ? RESTING_MS : wait);
}

function choose(next) {
  view = next;
  etag = null;
  byId("filter").value = view.filter;
  byId("order").value = view.order;
  refresh();
}

function tell(text) {
  say(byId("told"), text);
}

byId("experiment").addEventListener("change", (event) => {
  view.experiment = event.target.value;
  writeAddress(view, { step: true });
  choose(view);
});
byId("filter").addEventListener("input", (event) => {
  view.filter = event.target.value;
  writeAddress(view);
  showRanking();
});
byId("order").addEventListener("change", (event) => {
  view.order = event.target.value;
  writeAddress(view);
  showRanking();
});
byId("copy").addEventListener("click", async (event) => {
  await navigator.clipboard.writeText(asCsv(comparison));
  tell("Copied");
  event.target.textContent = "Copied";
  setTimeout(() => { event.target.textContent = "Copy CSV"; }, 1500);
});
byId("download").addEventListener("click", () => {
  const address = URL.createObjectURL(new Blob([asCsv(comparison)], { type: "text/csv" }));
  element("a", { href: address, download: "socratic-bench.csv" }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
});
addEventListener("popstate", () => choose(readAddress()));
document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });

skeleton(byId("rows"));
choose(view);
