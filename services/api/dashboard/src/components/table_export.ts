// The ranking as a file: the bytes of the API's CSV, copied or downloaded.

import type { View } from "../lib/address";
import { addressOf, readText } from "../lib/api";
import { byId, say } from "../lib/dom";
import { filterFields } from "../lib/filters";

const SHOWN_MS = 1500;

/** What a table shows; empty for the default. */
type Chosen = Pick<View, "experiment" | "profile" | "filters">;

/** The address of the CSV of a table. */
function csvAddress({ experiment, profile, filters }: Chosen): string {
  const fields = { experiment, profile, ...filterFields(filters), format: "csv" };
  return addressOf("/api/model-comparison", fields);
}

/** Lets the buttons copy and download the CSV of what `chosen` names. */
export function connectExport(chosen: () => Chosen): void {
  const copy = byId("copy");
  copy.addEventListener("click", () => void copyCsv(copy, csvAddress(chosen())));
}

/** Points the download at what is chosen. */
export function showExport(chosen: Chosen): void {
  const link = byId("download", HTMLAnchorElement);
  const address = csvAddress(chosen);
  if (link.getAttribute("href") !== address) link.href = address;
}

async function copyCsv(button: HTMLElement, address: string): Promise<void> {
  let outcome = "Copied";
  try {
    await navigator.clipboard.writeText(await readText(address));
  } catch {
    outcome = "Not copied";
  }
  say(byId("told"), outcome);
  say(button, outcome);
  setTimeout(() => {
    say(button, "Copy CSV");
  }, SHOWN_MS);
}
