// Messages that no service could handle, by queue, with a button that puts them back.

import { change, problemOf, read } from "../../lib/api";
import type { DeadLetterQueue, ShownDeadLetter } from "../../lib/api_types";
import { byId, element, say, toggle } from "../../lib/dom";
import { count, counted } from "../../lib/format";
import { keyGiven } from "./keys";

export async function showDeadLetters(): Promise<void> {
  const told = byId("dead-letters-told");
  try {
    const { data } = await read("/api/dead-letters");
    if (!data) return;
    // Without a broker there are no services, and so no messages of theirs.
    toggle(byId("dead-letters-section"), data.queues !== null);
    if (!data.queues) return;
    const waiting = data.queues.filter((queue) => queue.waiting > 0);
    say(told, sentence(waiting));
    const list = byId("dead-letters");
    const key = JSON.stringify(waiting);
    if (list.dataset.key === key) return;
    list.dataset.key = key;
    list.replaceChildren(...waiting.map(section));
  } catch (error) {
    say(told, problemOf(error));
  }
}

function sentence(waiting: readonly DeadLetterQueue[]): string {
  const all = waiting.reduce((sum, queue) => sum + queue.waiting, 0);
  if (!all) return "None: the services could handle every message.";
  return `${counted(all, "message")} that no service could handle. Mend the cause, then put them back.`;
}

function section({ queue, waiting, letters }: DeadLetterQueue): HTMLElement {
  const button = element("button", { type: "button" }, "Put back");
  button.addEventListener("click", () => void redrive(queue, button));
  const more = waiting > letters.length ? `The oldest ${count(letters.length)} are listed.` : "";
  return element(
    "section",
    { class: "dead-queue", "aria-label": queue },
    element("div", { class: "toolbar" }, element("h3", {}, `${queue}: ${count(waiting)}`), button),
    element(
      "div",
      { class: "scroll", role: "region", "aria-label": `Dead letters of ${queue}`, tabindex: 0 },
      element(
        "table",
        { class: "plain" },
        element(
          "thead",
          {},
          element("tr", {}, ...["Message", "Group", "Attempts", "Reason"].map(heading)),
        ),
        element("tbody", {}, ...letters.map(row)),
      ),
    ),
    element("p", { class: "quiet" }, more),
  );
}

function heading(text: string): HTMLElement {
  return element("th", { scope: "col" }, text);
}

function row(letter: ShownDeadLetter): HTMLElement {
  return element(
    "tr",
    {},
    element("th", { scope: "row", class: "identifier" }, letter.id),
    element("td", {}, element("bdi", {}, letter.group)),
    element("td", { class: "figure" }, String(letter.attempts)),
    element("td", { dir: "auto" }, letter.reason),
  );
}

async function redrive(queue: DeadLetterQueue["queue"], button: HTMLButtonElement): Promise<void> {
  button.disabled = true;
  try {
    const body = { queue };
    const answer = await change("POST", "/api/dead-letters/redrive", {}, body, keyGiven());
    const back = Object.values(answer.put_back).reduce((sum, number) => sum + number, 0);
    say(byId("dead-letters-told"), `${counted(back, "message")} went back into ${queue}.`);
    setTimeout(() => void showDeadLetters(), 1_000);
  } catch (error) {
    say(byId("dead-letters-told"), problemOf(error));
  } finally {
    button.disabled = false;
  }
}
