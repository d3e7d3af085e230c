// The ranking as a file: the bytes of the API's CSV, copied or downloaded.

import { addressOf, readText } from "../lib/api";
import { byId, say } from "../lib/dom";

const SHOWN_MS = 1500;

/** The address of the CSV of the chosen experiment. */
function csvAddress(experiment: string): string {
  return addressOf("/api/model-comparison", { experiment, format: "csv" });
}

/** Lets the buttons copy and download the CSV of the experiment that `chosen` names. */
export function connectExport(chosen: () => string): void {
  const copy = byId("copy");
  copy.addEventListener("click", () => void copyCsv(copy, csvAddress(chosen())));
}

/** Points the download at the chosen experiment. */
export function showExport(experiment: string): void {
  const link = byId("download", HTMLAnchorElement);
  const address = csvAddress(experiment);
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
