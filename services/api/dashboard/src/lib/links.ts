// Addresses of the pages, relative, so that they hold in a folder of a static site too.

function page(name: string, fields: Record<string, string>, hash = ""): string {
  const given = Object.entries(fields).filter(([, value]) => value !== "");
  const query = new URLSearchParams(given).toString();
  return `${name}.html${query ? `?${query}` : ""}${hash}`;
}

export function runPage(run: string, turn?: number): string {
  return page("run", { run }, turn === undefined ? "" : `#turn-${turn}`);
}

/** The ranking of an experiment with the row of a model open. */
export function rankingPage(experiment: string, model: string): string {
  return page("research", { experiment, open: model });
}

/** The ranking of one experiment. */
export function experimentRanking(experiment: string): string {
  return page("research", { experiment });
}

export function experimentPage(experiment: string): string {
  return page("experiments", { experiment });
}

/** Two tutors side by side on a scenario of an experiment. */
export function comparePage(a: string, b: string, experiment: string, scenario = ""): string {
  return page("compare", { a, b, experiment, scenario });
}

/** The ranking of an experiment with the runs of one scenario of a model open. */
export function runsInRanking(experiment: string, model: string, runs: string): string {
  return page("research", { experiment, open: model, runs });
}
