// Addresses of the pages, relative, so that they hold in a folder of a static site too.

/** The profile that this page is read by; empty for the experiment's own one. */
function profileHere(): string {
  return new URLSearchParams(location.search).get("profile") ?? "";
}

function page(name: string, fields: Record<string, string>, hash = ""): string {
  const given = Object.entries(fields).filter(([, value]) => value !== "");
  const query = new URLSearchParams(given).toString();
  return `${name}.html${query ? `?${query}` : ""}${hash}`;
}

/** A page that is read by the same profile as this one. */
function pageByProfile(name: string, fields: Record<string, string>, hash = ""): string {
  return page(name, { ...fields, profile: profileHere() }, hash);
}

export function runPage(run: string, turn?: number): string {
  return pageByProfile("run", { run }, turn === undefined ? "" : `#turn-${turn}`);
}

/** The turn of a run by its place in the plan: of several repeats the one with the lowest score there. */
export function turnPage(
  experiments: readonly string[],
  model: string,
  scenario: string,
  turn: number,
  profile: string,
): string {
  const query = new URLSearchParams({ model, scenario, profile });
  for (const experiment of experiments) query.append("experiment", experiment);
  return `run.html?${query}#turn-${turn}`;
}

/** The profile that the page of fidelity reads without another choice. */
export const FIDELITY = "fidelity-1";

/** How long the tutors of an experiment keep asking, with one of them in full. */
export function fidelityPage(experiment: string, model = ""): string {
  return page("fidelity", { experiment, model });
}

/** The ranking of an experiment with the row of a model open. */
export function rankingPage(experiment: string, model: string): string {
  return pageByProfile("research", { experiment, open: model });
}

/** The row of a tutor in the default ranking, whose experiments may have other profiles. */
export function defaultRankingPage(model: string): string {
  return page("research", { open: model });
}

/** The ranking of one experiment. */
export function experimentRanking(experiment: string): string {
  return pageByProfile("research", { experiment });
}

export function experimentPage(experiment: string): string {
  return page("experiments", { experiment });
}

/** The id of the section about a scenario on the page of scenarios. */
export function scenarioAnchor(scenario: string): string {
  return `scenario-${encodeURIComponent(scenario)}`;
}

/**
 * One scenario of an experiment: what it asks, how hard it is, and the responses to it; by the
 * profile of this page where the experiment has scores by it.
 */
export function scenarioPage(
  experiment: string,
  scenario: string,
  profiles: readonly string[],
): string {
  const profile = profiles.includes(profileHere()) ? profileHere() : "";
  const hash = `#${encodeURIComponent(scenarioAnchor(scenario))}`;
  return page("scenarios", { experiment, profile }, hash);
}

/** Two tutors side by side on a scenario of an experiment. */
export function comparePage(a: string, b: string, experiment: string, scenario = ""): string {
  return pageByProfile("compare", { a, b, experiment, scenario });
}

/** The ranking of an experiment with the runs of one scenario of a model open. */
export function runsInRanking(experiment: string, model: string, runs: string): string {
  return pageByProfile("research", { experiment, open: model, runs });
}

const READING_PAGES: readonly string[] = [
  "research",
  "frontier",
  "heatmap",
  "fidelity",
  "compare",
  "scenarios",
  "trends",
];

/** The address of another page that shows the same experiment by the same profile as this one. */
export function sameResults(address: string): string {
  const to = new URL(address, location.href);
  const from = new URL(location.href);
  const nameOf = ({ pathname }: URL) => /([^/]*)\.html$/.exec(pathname)?.[1] ?? "research";
  if (!READING_PAGES.includes(nameOf(from)) || !READING_PAGES.includes(nameOf(to))) return to.href;
  const experiment = from.searchParams.get("experiment") ?? "";
  for (const name of ["experiment", "profile"]) to.searchParams.delete(name);
  // Only the ranking shows all experiments in one table.
  if (experiment === "all" && nameOf(to) !== "research") return to.href;
  // A trend has a point for each experiment, and so none of its own.
  if (experiment && nameOf(to) !== "trends") to.searchParams.set("experiment", experiment);
  // Turns kept are read by a profile that counts breaks, and other pages by any other.
  const isOwn = [nameOf(from), nameOf(to)].includes("fidelity");
  if (profileHere() && !isOwn) to.searchParams.set("profile", profileHere());
  return to.href;
}
