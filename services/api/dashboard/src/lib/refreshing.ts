// Asking the API now and again, the latest question alone being answered.

const RESTING_MS = 15_000;
const AWAY_MS = 5_000;

export interface Asking {
  /** Asks and shows; `isCurrent` says whether no later question has begun. */
  ask: (isCurrent: () => boolean) => Promise<void>;
  away: (error: unknown) => void;
}

export class Refreshing {
  #round = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly asking: Asking) {
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) void this.now();
    });
  }

  async now(): Promise<void> {
    clearTimeout(this.#timer);
    const mine = (this.#round += 1);
    let wait = RESTING_MS;
    try {
      await this.asking.ask(() => mine === this.#round);
    } catch (error) {
      if (mine !== this.#round) return;
      this.asking.away(error);
      wait = AWAY_MS;
    }
    if (mine === this.#round) this.#timer = setTimeout(() => void this.now(), wait);
  }
}
