// A time in UTC, as `day` has it, with the exact one on hover.

import { element } from "./dom";

export function moment(iso: string): HTMLTimeElement {
  const date = new Date(iso);
  const told = date.toLocaleString(undefined, {
    dateStyle: "medium",
    timeStyle: "short",
    timeZone: "UTC",
  });
  return element("time", { datetime: iso, title: iso }, `${told} UTC`);
}
