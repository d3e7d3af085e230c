// A time as people read it here, with the exact one on hover.

import { element } from "./dom";

export function moment(iso: string): HTMLTimeElement {
  const date = new Date(iso);
  const told = date.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
  return element("time", { datetime: iso, title: iso }, told);
}
