// The method page: the profile as the scorer describes it, and the box that scores a text.

import { ApiProblem, read, send } from "./api.js";
import { byId, element, say, toggle } from "./dom.js";
import { score } from "./format.js";
import { kindsOf, marked, markedText } from "./marked_text.js";

const TYPING_PAUSE_MS = 300;
const STATUSES = ["ok", "truncated", "refused", "empty", "error"];
let pending = null;
let pause = null;
let vectors = [];
let legend = [];

function inWords(word, sentence) {
  return word ? `${word}: ${sentence}` : sentence;
}

function example({ text, output_tokens: tokens, score: value, arithmetic, word }) {
  const counted = tokens === null ? null : element("small", { class: "quiet" }, ` ${tokens} tokens`);
  return element(
    "tr",
    {},
    element("td", {}, element("q", {}, text), counted),
    element("td", { class: "arithmetic" }, inWords(word, arithmetic ?? "")),
    element("td", { class: "figure" }, score(value)),
  );
}

function describedVector(vector) {
  const heading = (text, kind) => element("th", { scope: "col", class: kind }, text);
  return element(
    "section",
    { class: "vector" },
    element("h3", {}, vector.name),
    element("p", {}, vector.meaning),
    element("pre", { class: "formula" }, element("code", {}, vector.formula)),
    element(
      "table",
      { class: "examples" },
      element("thead", {}, element("tr", {}, heading("Response"), heading("Arithmetic", "arithmetic"), heading("Score", "figure"))),
      element("tbody", {}, ...vector.examples.map(example)),
    ),
  );
}

function weighing(profile) {
  const weighed = Object.entries(profile.weights).map(([dimension, weights]) =>
    `in ${dimension}, ${Object.entries(weights).map(([name, weight]) => `${name} × ${weight}`).join(", ")}`);
  const equal = `The overall score of a response is the mean of its ${profile.vectors.length} vectors, each counting the same`;
  return `${equal}${weighed.length ? `; but ${weighed.join("; ")}` : ""}. This is profile ${profile.name}.`;
}

async function showProfile() {
  try {
    const { data } = await read("/api/profiles");
    const profile = data.profiles.find((each) => each.canonical) ?? data.profiles[0];
    vectors = profile.vectors.map((vector) => vector.name);
    legend = profile.legend;
    byId("profile").replaceChildren(
      ...profile.vectors.map(describedVector),
      element("p", { class: "weighing" }, weighing(profile)),
    );
  } catch {
    byId("profile").replaceChildren(element("p", { class: "notice" }, "The API does not answer, so the vectors cannot be described here. Load the page again in a moment."));
  }
}

function sum(name, value, arithmetic, kind = "") {
  return [
    element("dt", { class: kind }, name),
    element("dd", { class: `figure ${kind}` }, score(value)),
    element("dd", { class: `arithmetic ${kind}` }, arithmetic),
  ];
}

function showScore(text, answer) {
  const { evidence } = answer;
  byId("marked").replaceChildren(...markedText(text, evidence, legend));
  const numberOf = ({ kind, mark }) => (mark === "passage" ? "" : ` ${evidence.spans.filter((span) => span.kind === kind).length}`);
  byId("marks").replaceChildren(
    ...[...kindsOf(evidence, legend).values()].map((kind) => element("li", {}, marked(kind, kind.name), numberOf(kind))),
  );
  const names = vectors.length ? vectors : Object.keys(evidence.facts);
  const arithmetic = (name) => inWords(evidence.facts[name]?.word, evidence.facts[name]?.sentence ?? "");
  const scored = answer.overall !== null;
  const sums = element(
    "dl",
    { class: "sums" },
    ...names.flatMap((name) => sum(name, answer[name], scored ? arithmetic(name) : "")),
    ...sum("overall", answer.overall, scored ? `mean of ${names.map((name) => score(answer[name])).join(", ")}` : "", "total"),
  );
  const told = scored ? evidence.notes : [`Status “${answer.status}”: unscored, which is not zero.`];
  byId("figures").replaceChildren(sums, ...told.map((note) => element("p", { class: "quiet" }, note)));
  toggle(byId("result"), true);
}

function request() {
  const tokens = byId("tokens").value;
  return {
    text: byId("text").value,
    status: byId("status").value,
    ...(tokens === "" ? {} : { output_tokens: Number(tokens) }),
  };
}

async function scoreText() {
  clearTimeout(pause);
  pending?.abort();
  const mine = (pending = new AbortController());
  const asked = request();
  try {
    const answer = await send("/api/score", asked, mine.signal);
    toggle(byId("problem"), false);
    showScore(asked.text, answer);
  } catch (error) {
    if (mine.signal.aborted) return;
    toggle(byId("problem"), true);
    say(byId("problem"), error instanceof ApiProblem ? error.message : "The API does not answer. Try again in a moment.");
  }
}

byId("status").append(...STATUSES.map((status) => element("option", { value: status }, status)));
byId("score").addEventListener("click", scoreText);
for (const id of ["text", "tokens", "status"]) {
  byId(id).addEventListener("input", () => {
    clearTimeout(pause);
    pause = setTimeout(scoreText, TYPING_PAUSE_MS);
  });
}
await showProfile();
await scoreText();
