// The palette: a word leads to a page, a tutor, a scenario or an experiment, by keyboard.

import { read } from "../lib/api";
import { element, say } from "../lib/dom";
import { count, shortened } from "../lib/format";
import { defaultRankingPage, experimentPage, sameResults, scenarioPage } from "../lib/links";

const MOST_SHOWN = 30;

interface Target {
  kind: "page" | "tutor" | "scenario" | "experiment";
  name: string;
  address: string;
  /** What is searched besides the name. */
  also: string;
}

function pages(): Target[] {
  const links = document.querySelectorAll<HTMLAnchorElement>("header.site nav a");
  return Array.from(links, (link) => ({
    kind: "page",
    name: link.textContent,
    address: sameResults(link.href),
    also: "",
  }));
}

async function things(): Promise<Target[]> {
  const [comparison, experiments] = await Promise.all([
    read("/api/model-comparison"),
    read("/api/experiments", { limit: "500" }),
  ]);
  const listed = experiments.data?.experiments ?? [];
  const table = listed.length ? (await read("/api/scenario-scores")).data : null;
  return [
    ...(comparison.data?.models ?? []).map(({ model_id: id, model_name: name, kind }): Target => ({
      kind: "tutor",
      name,
      address: defaultRankingPage(id),
      also: `${id} ${kind}`,
    })),
    ...(table?.scenarios ?? []).map(({ scenario_id: id, title, dimension }): Target => ({
      kind: "scenario",
      name: title === "" ? id : title,
      address: scenarioPage(table?.experiment_id ?? "", id),
      also: `${id} ${dimension}`,
    })),
    ...listed.map(({ experiment_id: id, name, occasion }): Target => ({
      kind: "experiment",
      name: name ?? occasion ?? id,
      address: experimentPage(id),
      also: id,
    })),
  ];
}

class Palette {
  readonly #input = element("input", {
    type: "text",
    role: "combobox",
    "aria-expanded": "true",
    "aria-controls": "palette-list",
    "aria-autocomplete": "list",
    "aria-label": "Go to a page, tutor, scenario or experiment",
    placeholder: "Page, tutor, scenario or experiment",
    autocomplete: "off",
    spellcheck: "false",
  });
  readonly #list = element("ul", { id: "palette-list", role: "listbox", "aria-label": "Found" });
  readonly #told = element("p", { class: "quiet small", role: "status" });
  readonly #dialog = element(
    "dialog",
    { class: "palette", "aria-label": "Go to" },
    this.#input,
    this.#list,
    this.#told,
  );
  #targets: Target[] = [];
  #shown: Target[] = [];
  #active = 0;

  constructor() {
    document.body.append(this.#dialog);
    this.#input.addEventListener("input", () => {
      this.#search();
    });
    this.#input.addEventListener("keydown", (event) => {
      this.#press(event);
    });
    this.#dialog.addEventListener("click", ({ target }) => {
      if (target === this.#dialog) this.#dialog.close();
    });
  }

  open(): void {
    if (this.#dialog.open) return;
    this.#input.value = "";
    this.#dialog.showModal();
    this.#targets = pages();
    this.#search();
    void this.#read();
  }

  async #read(): Promise<void> {
    try {
      this.#targets = [...pages(), ...(await things())];
      this.#search();
    } catch {
      say(this.#told, "The API does not answer: these are the pages alone.");
    }
  }

  #search(): void {
    const words = this.#input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = this.#targets.filter(({ kind, name, also }) => {
      const text = `${kind} ${name} ${also}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
    this.#shown = found.slice(0, MOST_SHOWN);
    const more = found.length > MOST_SHOWN ? `, of which ${MOST_SHOWN} are shown` : "";
    say(this.#told, `${count(found.length)} found${more}`);
    this.#list.replaceChildren(...this.#shown.map((target, at) => this.#option(target, at)));
    this.#activate(0);
  }

  #option({ kind, name, address }: Target, at: number): HTMLElement {
    const option = element(
      "li",
      { id: `palette-${at}`, role: "option", "aria-selected": "false", title: name },
      element("bdi", {}, shortened(name, 60)),
      " ",
      element("span", { class: "quiet small" }, kind),
    );
    option.addEventListener("click", () => {
      this.#go(address);
    });
    return option;
  }

  #activate(at: number): void {
    this.#active = at;
    for (const [place, option] of [...this.#list.children].entries()) {
      option.ariaSelected = String(place === at);
      if (place === at) option.scrollIntoView({ block: "nearest" });
    }
    if (this.#shown.length) this.#input.setAttribute("aria-activedescendant", `palette-${at}`);
    else this.#input.removeAttribute("aria-activedescendant");
  }

  #press(event: KeyboardEvent): void {
    const number = this.#shown.length;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined && number) {
      event.preventDefault();
      this.#activate((this.#active + step + number) % number);
    } else if (event.key === "Enter") {
      event.preventDefault();
      const target = this.#shown[this.#active];
      if (target) this.#go(target.address);
    }
  }

  #go(address: string): void {
    this.#dialog.close();
    location.assign(address);
  }
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest("input, textarea, select") !== null;
}

/** Lets `/` and Ctrl-K open the palette on this page, and a button in its head. */
export function connectPalette(): void {
  const palette = new Palette();
  addEventListener("keydown", (event) => {
    const isSlash = event.key === "/" && !isTyping(event.target);
    const isLetter = event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey);
    if (!isLetter && (!isSlash || event.ctrlKey || event.metaKey || event.altKey)) return;
    event.preventDefault();
    palette.open();
  });
  const keys = { class: "jump", type: "button", "aria-keyshortcuts": "/ Control+K" };
  const button = element("button", keys, "Go to ", element("kbd", {}, "/"));
  button.addEventListener("click", () => {
    palette.open();
  });
  document.querySelector("header.site")?.append(button);
}
