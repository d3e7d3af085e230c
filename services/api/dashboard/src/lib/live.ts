// The detail of an experiment as it changes: by server-sent events, or by polling where there are none.

import { ApiProblem, addressOf, read } from "./api";
import type { ExperimentDetail } from "./api_types";

const PATH = "/api/experiments/{experiment_id}";
const POLL_MS = 2_000;
const AWAY_MS = 5_000;

export interface Listener {
  changed: (detail: ExperimentDetail) => void;
  away: (error: unknown) => void;
}

/** Follows an experiment until `stop`. */
export class Live {
  #source: EventSource | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #etag: string | null = null;
  #stopped = false;

  constructor(
    readonly experiment: string,
    private readonly listener: Listener,
  ) {
    void this.#poll({ once: true });
  }

  stop(): void {
    this.#stopped = true;
    this.#source?.close();
    clearTimeout(this.#timer);
  }

  /** The first answer comes by a plain request: it says why there is none. */
  async #poll({ once }: { once: boolean }): Promise<void> {
    let wait = POLL_MS;
    try {
      const fields = { experiment_id: this.experiment };
      const { etag, data } = await read(PATH, fields, this.#etag);
      if (this.#stopped) return;
      this.#etag = etag;
      if (data) this.listener.changed(data);
      if (once) {
        this.#listen();
        return;
      }
    } catch (error) {
      if (this.#stopped) return;
      this.listener.away(error);
      if (error instanceof ApiProblem && error.status < 500) return;
      wait = AWAY_MS;
    }
    this.#timer = setTimeout(() => void this.#poll({ once }), wait);
  }

  #listen(): void {
    const path = `${PATH}/events` as const;
    const source = new EventSource(addressOf(path, { experiment_id: this.experiment }));
    this.#source = source;
    source.addEventListener("experiment", (event: MessageEvent<string>) => {
      this.#etag = event.lastEventId;
      this.listener.changed(JSON.parse(event.data) as ExperimentDetail);
    });
    source.addEventListener("away", () => {
      this.listener.away(null);
    });
    source.addEventListener("gone", () => {
      this.stop();
      this.listener.away(new ApiProblem(404, "This experiment was deleted."));
    });
    source.addEventListener("error", () => {
      // A lost connection comes back by itself; a refused one does not.
      if (source.readyState === EventSource.CLOSED) void this.#poll({ once: false });
      else this.listener.away(null);
    });
  }
}
