// A table as a file: the bytes of the API's CSV, copied or downloaded.

import { addressOf, readText, type Fields } from "../lib/api";
import { byId, say } from "../lib/dom";

const SHOWN_MS = 1500;

/** The address of the CSV of a table, with the fields that the table was asked for by. */
export function csvAddress(path: string, fields: Fields): string {
  return addressOf(path, { ...fields, format: "csv" });
}

/** Lets the buttons copy and download the CSV at `address`. */
export function connectExport(address: () => string): void {
  const copy = byId("copy");
  copy.addEventListener("click", () => void copyCsv(copy, address()));
}

/** Points the download at an address. */
export function showExport(address: string): void {
  const link = byId("download", HTMLAnchorElement);
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
