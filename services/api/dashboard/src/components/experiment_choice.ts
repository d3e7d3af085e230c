// The experiments that a reader can choose from.

import type { ExperimentPage } from "../lib/api_types";
import { element } from "../lib/dom";
import { counted, day, isolated, shortened } from "../lib/format";

/** With the default first, and all experiments after it. */
export function experimentOptions({ experiments }: ExperimentPage): HTMLOptionElement[] {
  return [
    element("option", { value: "" }, "newest complete or pinned"),
    element("option", { value: "all" }, "all, by test conditions"),
    ...experiments.map(({ experiment_id: id, name, occasion, created_at, models }) => {
      const title = isolated(shortened(name ?? "", 40));
      const parts = [title, occasion, day(created_at), counted(models, "tutor"), shortened(id, 14)];
      return element("option", { value: id, title: id }, parts.filter(Boolean).join(" · "));
    }),
  ];
}
