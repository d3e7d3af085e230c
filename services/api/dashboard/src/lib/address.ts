// What is shown stands in the address, so that every view can be linked.

import { filterFields, filtersIn, type Filters } from "./filters";

const ORDERS = ["cheapest", "most-expensive"] as const;

export type Order = (typeof ORDERS)[number] | "";

/** What the ranking shows: the empty text stands for "not chosen". */
export interface View {
  experiment: string;
  profile: string;
  filters: Filters;
  filter: string;
  order: Order;
  open: Set<string>;
  /** The scenarios whose runs are shown, by `runsKey`. */
  runs: Set<string>;
}

/** A scenario of a model: no id has a line break. */
export function runsKey(model: string, scenario: string): string {
  return `${model}\n${scenario}`;
}

export function orderNamed(name: string | null): Order {
  return ORDERS.find((order) => order === name) ?? "";
}

export function readAddress(): View {
  const query = new URLSearchParams(location.search);
  return {
    experiment: query.get("experiment") ?? "",
    profile: query.get("profile") ?? "",
    filters: filtersIn(query),
    filter: query.get("q") ?? "",
    order: orderNamed(query.get("order")),
    open: new Set(query.getAll("open")),
    runs: new Set(query.getAll("runs")),
  };
}

/** Writes the view into the address; `step` makes it one that the back button returns from. */
export function writeAddress(view: View, { step = false } = {}): void {
  const query = new URLSearchParams();
  if (view.experiment) query.set("experiment", view.experiment);
  if (view.profile) query.set("profile", view.profile);
  for (const [name, values] of Object.entries(filterFields(view.filters))) {
    for (const value of [values].flat()) if (value) query.append(name, value);
  }
  if (view.filter) query.set("q", view.filter);
  if (view.order) query.set("order", view.order);
  for (const model of view.open) query.append("open", model);
  for (const runs of view.runs) query.append("runs", runs);
  const text = query.toString();
  const address = `${location.pathname}${text ? `?${text}` : ""}${location.hash}`;
  if (step) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
}
