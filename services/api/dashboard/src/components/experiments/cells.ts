// What the tables of experiments and of models have in common.

import { element, say } from "../../lib/dom";
import { count } from "../../lib/format";

/** A cell with a bar and "done of planned". */
export function progressCell(label: string): HTMLTableCellElement {
  const bar = element("progress", { max: 1, value: 0, "aria-label": label });
  return element("td", { role: "cell", class: "runs-done" }, element("span", {}), bar);
}

export function showProgressCell(cell: HTMLElement, done: number, planned: number): void {
  const bar = cell.querySelector("progress");
  const text = cell.querySelector("span");
  if (bar) bar.value = planned ? done / planned : 0;
  if (text) say(text, `${count(done)} of ${count(planned)}`);
}

/** Sets the text of the cells of a row that have these classes. */
export function sayCells(row: HTMLElement, texts: Record<string, string>): void {
  for (const [name, text] of Object.entries(texts)) {
    const cell = row.querySelector(`.${name}`);
    if (cell) say(cell, text);
  }
}
