// Being told when an answer of the API changes, by server-sent events, while the page is seen.

import { addressOf, type Fields } from "./api";
import { Stream } from "./stream";

const CHANGES = { "/api/model-comparison": "/api/model-comparison/events" } as const;

/** Calls `changed` at each change, and again only once it has ended. */
export class Changes {
  readonly #stream = new Stream({
    events: { change: () => void this.#tell() },
    // The page polls, too.
    lost: () => undefined,
    none: () => undefined,
  });
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
    void this.#stream.open(address);
  }

  stop(): void {
    this.#stream.close();
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
