// The profile that scores are read by: a choice where an experiment has scores by several.

import { byId, element, fill, toggle, withCode } from "../lib/dom";

/** Calls `chosen` with the profile that a person picks. */
export function connectProfiles(chosen: (profile: string) => void): void {
  const select = byId("profile", HTMLSelectElement);
  select.addEventListener("change", () => {
    chosen(select.value);
  });
}

/** Shows the choice where there is one, with the profile in use. */
export function showProfiles(profile: string | null, profiles: readonly string[]): void {
  toggle(byId("profile-choice"), profiles.length > 1);
  const select = byId("profile", HTMLSelectElement);
  const shown = Array.from(select.options, (option) => option.value);
  if (shown.join("\n") !== profiles.join("\n")) {
    select.replaceChildren(...profiles.map((name) => element("option", { value: name }, name)));
  }
  select.value = profile ?? "";
}

/** Says why there is nothing to show; where the address names a profile, a link leads on without. */
export function sayProblem(node: HTMLElement, problem: string): void {
  const told = `${problem.charAt(0).toUpperCase()}${problem.slice(1)}`;
  const address = new URL(location.href);
  if (!address.searchParams.has("profile")) {
    fill(node, ...withCode(told));
    return;
  }
  address.searchParams.delete("profile");
  const own = element("a", { href: address.href }, "Read the scores by the plan’s own profile");
  fill(node, ...withCode(told), /[.!?]$/.test(told) ? " " : ". ", own, ".");
}
