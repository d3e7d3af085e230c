// A button that copies a table as CSV, as a spreadsheet reads it.

import { element, say } from "../lib/dom";

const SHOWN_MS = 1500;

export type CsvRow = readonly (string | number | null)[];

/** A text that a spreadsheet would take for a formula gets an apostrophe before it. */
function field(value: string | number | null): string {
  if (value === null) return "";
  const text = typeof value === "string" && /^[=+\-@\t]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function csvText(rows: readonly CsvRow[]): string {
  return rows.map((row) => `${row.map(field).join(",")}\r\n`).join("");
}

/** The button copies what `rows` gives when it is pressed; it is hidden where there is no clipboard. */
export function copyButton(rows: () => readonly CsvRow[]): HTMLButtonElement {
  const button = element("button", { type: "button", class: "copy" }, "Copy CSV");
  button.hidden = !("clipboard" in navigator);
  button.ariaLive = "polite";
  button.addEventListener("click", () => void copy(button, csvText(rows())));
  return button;
}

async function copy(button: HTMLButtonElement, text: string): Promise<void> {
  let outcome = "Copied";
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    outcome = "Not copied";
  }
  say(button, outcome);
  setTimeout(() => {
    say(button, "Copy CSV");
  }, SHOWN_MS);
}
