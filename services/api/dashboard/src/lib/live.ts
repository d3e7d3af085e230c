// The detail of an experiment as it changes: by server-sent events, or by polling where there are none.

import { ApiProblem, addressOf, read } from "./api";
import { capabilities } from "./capabilities";
import type { ExperimentDetail } from "./api_types";

const PATH = "/api/experiments/{experiment_id}";
const RUNNING_MS = 2_000;
const RESTING_MS = 15_000;
const AWAY_MS = 5_000;

export interface Listener {
  changed: (detail: ExperimentDetail) => void;
  /** The API answered, and nothing has changed. */
  unchanged: () => void;
  away: (error: unknown) => void;
}

/** Follows an experiment until `stop`. */
export class Live {
  #source: EventSource | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #etag: string | null = null;
  #isRunning = true;
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

  /** Asks at once where no event tells of a change. */
  refresh(): void {
    if (this.#source && this.#source.readyState !== EventSource.CLOSED) return;
    clearTimeout(this.#timer);
    void this.#poll({ once: false });
  }

  /** The first answer comes by a plain request: it says why there is none. */
  async #poll({ once }: { once: boolean }): Promise<void> {
    let wait = RESTING_MS;
    try {
      const fields = { experiment_id: this.experiment };
      const { etag, data } = await read(PATH, fields, this.#etag);
      if (this.#isOver()) return;
      this.#etag = etag;
      if (data) this.#changed(data);
      else this.listener.unchanged();
      if (once && (await capabilities()).streams) {
        if (!this.#isOver()) this.#listen();
        return;
      }
      if (this.#isRunning && !document.hidden) wait = RUNNING_MS;
    } catch (error) {
      if (this.#isOver()) return;
      this.listener.away(error);
      if (error instanceof ApiProblem && error.status < 500) return;
      wait = AWAY_MS;
    }
    if (this.#isOver()) return;
    this.#timer = setTimeout(() => void this.#poll({ once }), wait);
  }

  /** Asked again after each wait: a listener may have stopped this meanwhile. */
  #isOver(): boolean {
    return this.#stopped;
  }

  #changed(detail: ExperimentDetail): void {
    this.#isRunning = detail.state === "running";
    this.listener.changed(detail);
  }

  #listen(): void {
    const path = `${PATH}/events` as const;
    const source = new EventSource(addressOf(path, { experiment_id: this.experiment }));
    this.#source = source;
    source.addEventListener("experiment", (event: MessageEvent<string>) => {
      this.#etag = event.lastEventId;
      this.#changed(JSON.parse(event.data) as ExperimentDetail);
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
