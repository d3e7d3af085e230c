// The palette: a word leads to a page, a tutor, a scenario or an experiment, by keyboard.

import { read } from "../lib/api";
import { element, say } from "../lib/dom";
import { count, shortened } from "../lib/format";
import { defaultRankingPage, experimentPage, sameResults, scenarioPage } from "../lib/links";

const MOST_SHOWN = 30;
const TYPING_PAUSE_MS = 150;

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

async function tutorsAndScenarios(): Promise<Target[]> {
  const comparison = await read("/api/model-comparison");
  const isEmpty = comparison.data?.models.length === 0;
  const table = isEmpty ? null : (await read("/api/scenario-scores")).data;
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
      address: scenarioPage(table?.experiment_id ?? "", id, table?.profiles ?? []),
      also: `${id} ${dimension}`,
    })),
  ];
}

interface Experiments {
  /** The words that they were searched by. */
  words: string;
  targets: Target[];
  total: number;
}

/** The newest experiments with all words, which the API finds among all; "experiment" is none. */
async function experimentsWith(words: readonly string[]): Promise<Experiments> {
  const named = words.filter((word) => !(word.length > 2 && "experiment".startsWith(word)));
  const fields = { q: named.join(" "), limit: String(MOST_SHOWN) };
  const { data } = await read("/api/experiments", fields);
  const targets = (data?.experiments ?? []).map(
    ({ experiment_id: id, name, occasion }): Target => ({
      kind: "experiment",
      name: name ?? occasion ?? id,
      address: experimentPage(id),
      also: id,
    }),
  );
  return { words: words.join(" "), targets, total: data?.total ?? 0 };
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
  #experiments: Experiments = { words: "", targets: [], total: 0 };
  #pause: ReturnType<typeof setTimeout> | undefined;
  #round = 0;
  #shown: Target[] = [];
  #active = 0;

  constructor() {
    document.body.append(this.#dialog);
    this.#input.addEventListener("input", () => {
      this.#search();
      clearTimeout(this.#pause);
      this.#pause = setTimeout(() => void this.#find(), TYPING_PAUSE_MS);
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
      this.#targets = [...pages(), ...(await tutorsAndScenarios())];
      await this.#find();
    } catch {
      say(this.#told, "The API does not answer: these are the pages alone.");
    }
  }

  #words(): string[] {
    return this.#input.value.toLowerCase().split(/\s+/).filter(Boolean);
  }

  /** Has the API search the experiments, which may be hundreds. */
  async #find(): Promise<void> {
    const mine = (this.#round += 1);
    try {
      const found = await experimentsWith(this.#words());
      if (mine !== this.#round) return;
      this.#experiments = found;
      this.#search(this.#active);
    } catch {
      if (mine === this.#round) say(this.#told, "The API does not answer: no experiment is found.");
    }
  }

  /** Shows what is found, with the option at a place active. */
  #search(active = 0): void {
    const words = this.#words();
    const matches = ({ kind, name, also }: Target) => {
      const text = `${kind} ${name} ${also}`.toLowerCase();
      return words.every((word) => text.includes(word));
    };
    const found = this.#targets.filter(matches);
    // Until the API has answered, those of the words before stand in.
    const isCurrent = this.#experiments.words === words.join(" ");
    const targets = this.#experiments.targets.filter((each) => isCurrent || matches(each));
    const total = isCurrent ? this.#experiments.total : targets.length;
    this.#shown = [...found, ...targets].slice(0, MOST_SHOWN);
    const all = found.length + total;
    const more = all > this.#shown.length ? `, of which ${this.#shown.length} are shown` : "";
    say(this.#told, `${count(all)} found${more}`);
    this.#list.replaceChildren(...this.#shown.map((target, at) => this.#option(target, at)));
    this.#activate(Math.max(0, Math.min(active, this.#shown.length - 1)));
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
