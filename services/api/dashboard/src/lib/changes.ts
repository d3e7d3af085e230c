// Being told when an answer of the API changes, by server-sent events, while the page is seen.

import { addressOf, type Fields } from "./api";
import { capabilities } from "./capabilities";

const CHANGES = { "/api/model-comparison": "/api/model-comparison/events" } as const;

/** Calls `changed` at each change, and again only once it has ended. */
export class Changes {
  #source: EventSource | null = null;
  #address = "";
  #isBusy = false;
  #isMissed = false;

  constructor(private readonly changed: () => Promise<void>) {
    document.addEventListener("visibilitychange", () => {
      // A browser opens few connections to one host: those of hidden tabs are left to others.
      if (document.hidden) this.stop();
    });
  }

  /** Follows this answer alone. Does nothing where it is followed, or was refused. */
  follow(path: keyof typeof CHANGES, fields: Fields): void {
    const address = addressOf(CHANGES[path], fields);
    if (document.hidden || address === this.#address) return;
    this.stop();
    this.#address = address;
    void this.#open(address);
  }

  /** An API that cannot stream would answer with an error: there the page polls alone. */
  async #open(address: string): Promise<void> {
    try {
      if (!(await capabilities()).streams) return;
    } catch {
      if (address === this.#address) this.#address = "";
      return;
    }
    if (address !== this.#address || this.#source) return;
    this.#source = new EventSource(address);
    this.#source.addEventListener("change", () => void this.#tell());
  }

  stop(): void {
    this.#source?.close();
    this.#source = null;
    this.#address = "";
  }

  async #tell(): Promise<void> {
    this.#isMissed = true;
    if (this.#isBusy) return;
    this.#isBusy = true;
    while (this.#takeMissed()) await this.changed();
    this.#isBusy = false;
  }

  #takeMissed(): boolean {
    const isMissed = this.#isMissed;
    this.#isMissed = false;
    return isMissed;
  }
}
