// A scorer profile in words: each vector with its formula and worked examples, and the weights.

import type { DescribedProfile, DescribedVector, WorkedExample } from "../lib/api_types";
import { element } from "../lib/dom";
import { score } from "../lib/format";

/** A fact with the score in a word before it, where there is one. */
export function inWords(word: string | null | undefined, sentence: string): string {
  return word ? `${word}: ${sentence}` : sentence;
}

function example(worked: WorkedExample): HTMLElement {
  const { text, output_tokens: tokens, arithmetic, word } = worked;
  const counted =
    tokens === null ? null : element("small", { class: "quiet" }, ` ${tokens} tokens`);
  return element(
    "tr",
    {},
    element("td", {}, element("q", {}, text), counted),
    element("td", { class: "arithmetic" }, inWords(word, arithmetic ?? "")),
    element("td", { class: "figure" }, score(worked.score)),
  );
}

export function describedVector(vector: DescribedVector): HTMLElement {
  const heading = (text: string, kind = "") => element("th", { scope: "col", class: kind }, text);
  return element(
    "section",
    { class: "vector" },
    element("h3", {}, vector.name),
    element("p", {}, vector.meaning),
    element("pre", { class: "formula" }, element("code", {}, vector.formula)),
    element(
      "table",
      { class: "examples" },
      element(
        "thead",
        {},
        element(
          "tr",
          {},
          heading("Response"),
          heading("Arithmetic", "arithmetic"),
          heading("Score", "figure"),
        ),
      ),
      element("tbody", {}, ...vector.examples.map(example)),
    ),
  );
}

/** How the vectors enter the overall score. */
export function weighing(profile: DescribedProfile): string {
  if (profile.overall_formula !== null) {
    return `The overall score of a response is ${profile.overall_formula}. This is profile ${profile.name}.`;
  }
  const weighed = Object.entries(profile.weights).map(([dimension, weights]) => {
    const factors = Object.entries(weights).map(([name, weight]) => `${name} × ${weight}`);
    return `in ${dimension}, ${factors.join(", ")}`;
  });
  const number = profile.vectors.length;
  const equal = `The overall score of a response is the mean of its ${number} vectors, each counting the same`;
  return `${equal}${weighed.length ? `; but ${weighed.join("; ")}` : ""}. This is profile ${profile.name}.`;
}
