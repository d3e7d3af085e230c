// The filters of a page: choices that stand in the address, and what they do in a sentence.

import type { ModelComparison } from "../lib/api_types";
import { byId, element, fill, toggle } from "../lib/dom";
import { isFiltered, withoutFilters, type Filters } from "../lib/filters";
import { shortened } from "../lib/format";

const SEVERAL = "\n";
const DATE = /^\d{4}-\d{2}-\d{2}$/;

export class FilterBar {
  readonly #bar = byId("filters", HTMLDetailsElement);
  /** Null on a page that is about all tutors. */
  readonly #model = document.querySelector<HTMLSelectElement>("#filters #model");
  readonly #dimension = byId("dimension", HTMLSelectElement);
  readonly #since = byId("since", HTMLInputElement);
  readonly #until = byId("until", HTMLInputElement);
  readonly #names = new Map<string, string>();
  #filters: Filters;

  /** Calls `chosen` with the filters that a person picks. */
  constructor(filters: Filters, chosen: (filters: Filters) => void) {
    this.#filters = filters;
    this.#bar.open = isFiltered(filters);
    const change = (change: Partial<Filters>) => {
      chosen({ ...this.#filters, ...change });
    };
    this.#model?.addEventListener("change", ({ currentTarget }) => {
      const { value } = currentTarget as HTMLSelectElement;
      if (value !== SEVERAL) change({ models: value ? [value] : [] });
    });
    this.#dimension.addEventListener("change", () => {
      change({ dimension: this.#dimension.value });
    });
    this.#since.addEventListener("change", () => {
      change({ since: this.#since.value });
    });
    this.#until.addEventListener("change", () => {
      change({ until: this.#until.value });
    });
  }

  /** Shows the filters with the choices of a table; without a table the chosen ones alone. */
  show(filters: Filters, comparison: ModelComparison | null): void {
    this.#filters = filters;
    const { dimension } = filters;
    if (this.#model) this.#showModels(this.#model, filters.models, comparison);
    const dimensions = comparison?.filtered?.known_dimensions ?? comparison?.dimensions ?? [];
    const offered = new Set([...dimensions, ...(dimension ? [dimension] : [])]);
    choices(this.#dimension, [["", "all"], ...[...offered].map((each) => [each, each] as const)]);
    this.#dimension.value = dimension;
    for (const [input, value] of [
      [this.#since, filters.since],
      [this.#until, filters.until],
    ] as const) {
      const day = dayOf(value);
      if (input.value !== day) input.value = day;
    }
    this.#tell(comparison);
  }

  #showModels(
    select: HTMLSelectElement,
    chosen: readonly string[],
    comparison: ModelComparison | null,
  ): void {
    const shown = comparison?.models ?? [];
    for (const { model_id: id, model_name: name } of shown) this.#names.set(id, name);
    const known = comparison?.filtered?.known_models ?? shown.map(({ model_id: id }) => id);
    const ids = [...new Set([...known, ...chosen])];
    const several = chosen.length > 1 ? [[SEVERAL, `${chosen.length} tutors`] as const] : [];
    const named = ids.map((id) => [id, shortened(this.#names.get(id) ?? id, 40)] as const);
    choices(select, [["", "all"], ...several, ...named]);
    select.value = several.length ? SEVERAL : (chosen[0] ?? "");
  }

  /** Says what the filters do, with the link that clears them. */
  #tell(comparison: ModelComparison | null): void {
    const node = byId("filtered");
    toggle(node, isFiltered(this.#filters));
    if (!isFiltered(this.#filters)) return;
    const clear = element("a", { href: withoutFilters() }, "Clear the filters");
    fill(node, comparison?.filtered?.told ?? "The address has filters.", " ", clear, ".");
  }
}

/** The day of a date or a time, in UTC; empty without one. */
function dayOf(value: string): string {
  if (DATE.test(value)) return value;
  // Without an offset, the API takes a time as UTC.
  const moment = new Date(/(Z|[+-]\d{2}:?\d{2})$/i.test(value) ? value : `${value}Z`);
  return Number.isNaN(moment.getTime()) ? "" : moment.toISOString().slice(0, 10);
}

function choices(select: HTMLSelectElement, options: (readonly [string, string])[]): void {
  fill(select, ...options.map(([value, text]) => element("option", { value }, text)));
}
