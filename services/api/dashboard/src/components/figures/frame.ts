// A figure in a page: drawn to the width of its place, its marks within reach of the keyboard.

import { element, say } from "../../lib/dom";
import { counted } from "../../lib/format";
import { svgOf, type Figure } from "./figure";
import { saveControl } from "./save_control";

const HINT = "Point at a mark for its values, or step through the marks with the arrow keys.";
const LEAST_WIDTH = 280;

export class Frame {
  readonly node = element("div", { class: "frame" });
  readonly #place = element("div", { class: "place" });
  readonly #readout = element("p", { class: "readout quiet small", "aria-hidden": "true" }, HINT);
  #figure: Figure | null = null;
  #width = 0;
  #unnamed = 0;

  constructor() {
    const save = saveControl(() => this.#figure);
    this.node.append(this.#place, element("div", { class: "below" }, this.#readout, save));
    this.#place.addEventListener("keydown", (event) => {
      this.#step(event);
    });
    for (const name of ["focusin", "pointerover"]) {
      this.#place.addEventListener(name, ({ target }) => {
        this.#point(target);
      });
    }
    this.#place.addEventListener("pointerleave", () => {
      this.#point(document.activeElement);
    });
    new ResizeObserver(() => {
      if (this.#fitting() !== this.#width) this.#draw();
    }).observe(this.#place);
  }

  show(figure: Figure): void {
    this.#figure = figure;
    this.#draw();
  }

  #fitting(): number {
    return Math.max(LEAST_WIDTH, Math.floor(this.#place.clientWidth));
  }

  /** Draws anew; the mark that has the focus keeps it. */
  #draw(): void {
    if (!this.#figure || !this.#place.clientWidth) return;
    this.#width = this.#fitting();
    const focused = this.#place.contains(document.activeElement)
      ? document.activeElement?.getAttribute("data-key")
      : null;
    const drawing = this.#figure.draw(this.#width);
    this.#unnamed = drawing.unnamed ?? 0;
    this.#place.replaceChildren(svgOf(this.#figure, drawing, this.#width));
    const marks = this.#marks();
    const kept = marks.find((mark) => mark.dataset.key === focused);
    for (const mark of marks) mark.tabIndex = mark === (kept ?? marks[0]) ? 0 : -1;
    kept?.focus({ preventScroll: true });
    this.#point(kept ?? null);
  }

  #marks(): SVGAElement[] {
    return [...this.#place.querySelectorAll<SVGAElement>("svg.chart a")];
  }

  /** One mark alone stops the tab key; arrows lead to the others. */
  #step(event: KeyboardEvent): void {
    const marks = this.#marks();
    const at = marks.findIndex((mark) => mark === document.activeElement);
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const ends = { Home: 0, End: marks.length - 1 }[event.key];
    if (at < 0 || (step === undefined && ends === undefined)) return;
    event.preventDefault();
    const next = marks[ends ?? (at + (step ?? 0) + marks.length) % marks.length];
    if (!next) return;
    for (const mark of marks) mark.tabIndex = mark === next ? 0 : -1;
    next.focus();
  }

  #point(target: EventTarget | null): void {
    const mark = target instanceof Element ? target.closest("svg.chart a") : null;
    const without = this.#unnamed ? ` There is no room for ${counted(this.#unnamed, "name")}.` : "";
    say(this.#readout, mark?.getAttribute("aria-label") ?? `${HINT}${without}`);
  }
}
