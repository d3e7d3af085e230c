// The key for writing: a person types it, this page alone holds it, and a reload forgets it.

import { toggle } from "../../lib/dom";

let key = "";

/** Makes every field for the key on the page show the same one. */
export function connectKeys(): void {
  const fields = document.querySelectorAll<HTMLInputElement>("input.key");
  for (const field of fields) {
    field.addEventListener("input", () => {
      key = field.value;
      for (const other of fields) if (other !== field) other.value = key;
    });
  }
}

export function keyGiven(): string {
  return key;
}

/** Shows the fields for the key where changes take one. */
export function showKeys(needed: boolean): void {
  for (const field of document.querySelectorAll<HTMLElement>(".key-choice")) toggle(field, needed);
}
