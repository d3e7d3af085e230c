// The detail of an experiment as it changes: by server-sent events, or by polling where there are none.

import { ApiProblem, addressOf, read } from "./api";
import type { ExperimentDetail } from "./api_types";
import { Stream } from "./stream";

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
  readonly #stream = new Stream({
    events: {
      experiment: (event) => {
        this.#etag = event.lastEventId;
        this.#changed(JSON.parse(event.data) as ExperimentDetail);
        if (!this.#isRunning) this.#rest();
      },
      away: () => {
        this.listener.away(null);
      },
      gone: () => {
        this.stop();
        this.listener.away(new ApiProblem(404, "This experiment was deleted."));
      },
    },
    lost: () => {
      this.listener.away(null);
    },
    none: () => {
      this.#isFollowed = false;
      this.#streams = false;
      void this.#poll();
    },
  });
  #timer: ReturnType<typeof setTimeout> | undefined;
  #etag: string | null = null;
  #isRunning = true;
  /** Whether events tell of each change. */
  #isFollowed = false;
  /** False where a stream was of no use since the page was last seen. */
  #streams = true;
  #round = 0;
  #stopped = false;

  constructor(
    readonly experiment: string,
    private readonly listener: Listener,
  ) {
    document.addEventListener("visibilitychange", this.#seen);
    void this.#poll();
  }

  stop(): void {
    this.#stopped = true;
    this.#round += 1;
    document.removeEventListener("visibilitychange", this.#seen);
    this.#stream.close();
    clearTimeout(this.#timer);
  }

  /** Asks at once where no event tells of a change. */
  refresh(): void {
    if (!this.#isFollowed) void this.#poll();
  }

  readonly #seen = (): void => {
    this.#streams = true;
    if (document.hidden) this.#rest();
    else this.refresh();
  };

  /** Ends the stream: its connection is left to others. */
  #rest(): void {
    this.#stream.close();
    this.#isFollowed = false;
    this.#pollIn(RESTING_MS);
  }

  #pollIn(wait: number): void {
    clearTimeout(this.#timer);
    if (!this.#stopped) this.#timer = setTimeout(() => void this.#poll(), wait);
  }

  /** The first answer comes by a plain request: it says why there is none. */
  async #poll(): Promise<void> {
    clearTimeout(this.#timer);
    const mine = (this.#round += 1);
    try {
      const fields = { experiment_id: this.experiment };
      const { etag, data } = await read(PATH, fields, this.#etag);
      if (mine !== this.#round) return;
      this.#etag = etag;
      if (data) this.#changed(data);
      else this.listener.unchanged();
    } catch (error) {
      if (mine !== this.#round) return;
      this.listener.away(error);
      if (!(error instanceof ApiProblem) || error.status >= 500) this.#pollIn(AWAY_MS);
      return;
    }
    if (mine === this.#round) this.#follow();
  }

  /** Follows what runs, while the page is seen, by events where there are any. */
  #follow(): void {
    const isWatched = this.#isRunning && !document.hidden;
    if (!isWatched || !this.#streams) {
      this.#pollIn(isWatched ? RUNNING_MS : RESTING_MS);
      return;
    }
    this.#isFollowed = true;
    void this.#stream.open(addressOf(`${PATH}/events`, { experiment_id: this.experiment }));
  }

  #changed(detail: ExperimentDetail): void {
    this.#isRunning = ["running", "overdue"].includes(detail.state);
    this.listener.changed(detail);
  }
}
