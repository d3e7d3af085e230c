// Two quiet buttons that save a figure as a file.

import { element, say } from "../../lib/dom";
import type { Figure } from "./figure";
import { pngBlob, svgText } from "./paper";

const KEPT_MS = 10_000;

/** The control saves what `figure` gives when it is pressed. */
export function saveControl(figure: () => Figure | null): HTMLElement {
  const told = element("span", { class: "visually-hidden", role: "status" });
  const button = (name: string, blob: (figure: Figure) => Blob | Promise<Blob>) => {
    const node = element(
      "button",
      { type: "button", "aria-label": `Save the figure as ${name}` },
      name,
    );
    node.addEventListener("click", () => {
      const chosen = figure();
      if (chosen) void save(chosen, name, blob, told);
    });
    return node;
  };
  return element(
    "span",
    { class: "save quiet small" },
    "Save ",
    button("SVG", (chosen) => new Blob([svgText(chosen)], { type: "image/svg+xml" })),
    " ",
    button("PNG", pngBlob),
    told,
  );
}

async function save(
  figure: Figure,
  name: string,
  blob: (figure: Figure) => Blob | Promise<Blob>,
  told: HTMLElement,
): Promise<void> {
  try {
    const address = URL.createObjectURL(await blob(figure));
    const link = element("a", { href: address, download: `${figure.file}.${name.toLowerCase()}` });
    link.click();
    setTimeout(() => {
      URL.revokeObjectURL(address);
    }, KEPT_MS);
    say(told, `Saved as ${name}.`);
  } catch {
    say(told, `Not saved: this browser makes no ${name}.`);
  }
}
