// The drawing of a row: the score as a dot, its interval as a line, the leader's interval as a band.

import type { ModelFigures } from "../lib/api_types";
import { drawing } from "../lib/dom";

const TICKS = [0, 20, 40, 60, 80, 100];

function place(node: SVGElement, shares: Record<string, number>): void {
  for (const [name, share] of Object.entries(shares)) node.setAttribute(name, `${share * 100}%`);
}

export class Plot {
  readonly node: SVGSVGElement;
  readonly #band = drawing("rect", { class: "band", y: 0, height: "100%" });
  readonly #whisker: SVGLineElement;
  readonly #dot: SVGCircleElement;

  constructor(kind: ModelFigures["kind"]) {
    const radius = kind === "reference" ? 5 : 6;
    this.#whisker = drawing("line", { class: `whisker ${kind}`, y1: "50%", y2: "50%" });
    this.#dot = drawing("circle", { class: `dot ${kind}`, cy: "50%", r: radius });
    const grid = TICKS.map((tick) =>
      drawing("line", { class: "grid", x1: `${tick}%`, x2: `${tick}%`, y1: 0, y2: "100%" }),
    );
    const hidden = { "aria-hidden": "true", focusable: "false" };
    this.node = drawing("svg", hidden, this.#band, ...grid, this.#whisker, this.#dot);
  }

  show(model: ModelFigures, leader: ModelFigures | null): void {
    const own = model.confidence_interval;
    const [low, high] = leader?.confidence_interval ?? [0, 0];
    place(this.#band, { x: low, width: high - low });
    this.#whisker.style.display = own ? "" : "none";
    if (own) place(this.#whisker, { x1: own[0], x2: own[1] });
    this.#dot.style.display = model.overall_score === null ? "none" : "";
    if (model.overall_score !== null) place(this.#dot, { cx: model.overall_score });
  }
}
