// The filters of the results: what they show, as the address and the API name it.

/** The empty text stands for "not chosen". */
export interface Filters {
  models: readonly string[];
  dimension: string;
  /** A date or a time, as the API reads it. */
  since: string;
  until: string;
}

const NAMES = ["model", "dimension", "since", "until"] as const;

export function filtersIn(query: URLSearchParams): Filters {
  return {
    models: query.getAll("model").filter(Boolean),
    dimension: query.get("dimension") ?? "",
    since: query.get("since") ?? "",
    until: query.get("until") ?? "",
  };
}

/** The filters as fields of an address. */
export function filterFields({ models, dimension, since, until }: Filters): {
  model: readonly string[];
  dimension: string;
  since: string;
  until: string;
} {
  return { model: models, dimension, since, until };
}

export function isFiltered({ models, dimension, since, until }: Filters): boolean {
  return models.length > 0 || Boolean(dimension || since || until);
}

/** The address of this page without filters. */
export function withoutFilters(): string {
  const address = new URL(location.href);
  for (const name of NAMES) address.searchParams.delete(name);
  return address.href;
}
