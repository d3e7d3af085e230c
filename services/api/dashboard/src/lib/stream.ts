// Server-sent events for a page that is seen; few pages of a browser have them, the others poll.

import { capabilities } from "./capabilities";

/** A browser opens six connections to a host that has no HTTP/2: streams leave some to plain requests. */
const PLACES = ["socratic-stream-1", "socratic-stream-2", "socratic-stream-3"];
/** The API sends an event every 15 seconds; a proxy that keeps events back makes a stream silent. */
const SILENT_MS = 20_000;

export interface Hearing {
  /** What is done at each event, by its name. */
  events: Readonly<Record<string, (event: MessageEvent<string>) => void>>;
  /** The connection was lost, and comes back by itself. */
  lost: () => void;
  /** There is no stream: it was refused, is silent, or others have all places. */
  none: () => void;
}

/** One stream at most. */
export class Stream {
  #source: EventSource | null = null;
  #leave: (() => void) | null = null;
  #watch: ReturnType<typeof setTimeout> | undefined;
  #round = 0;

  constructor(private readonly hearing: Hearing) {}

  /** Opens the stream at an address, in place of an earlier one. */
  async open(address: string): Promise<void> {
    this.close();
    const mine = this.#round;
    const leave = await takePlace();
    if (mine !== this.#round) {
      leave?.();
      return;
    }
    if (!leave) {
      this.hearing.none();
      return;
    }
    this.#leave = leave;
    this.#listen(new EventSource(address));
  }

  close(): void {
    this.#round += 1;
    clearTimeout(this.#watch);
    this.#source?.close();
    this.#source = null;
    this.#leave?.();
    this.#leave = null;
  }

  #listen(source: EventSource): void {
    this.#source = source;
    this.#heard();
    source.addEventListener("heartbeat", () => {
      this.#heard();
    });
    for (const [name, told] of Object.entries(this.hearing.events)) {
      source.addEventListener(name, (event: MessageEvent<string>) => {
        this.#heard();
        told(event);
      });
    }
    source.addEventListener("error", () => {
      // A lost connection comes back by itself; a refused one does not.
      if (source.readyState === EventSource.CLOSED) this.#end();
      else this.hearing.lost();
    });
  }

  #heard(): void {
    clearTimeout(this.#watch);
    this.#watch = setTimeout(() => {
      this.#end();
    }, SILENT_MS);
  }

  #end(): void {
    this.close();
    this.hearing.none();
  }
}

/** Returns what gives the place back; null where none is free, or none can be counted. */
async function takePlace(): Promise<(() => void) | null> {
  // Browsers leave locks out where a page came without TLS from another machine.
  if (!("locks" in navigator) || !(await streams())) return null;
  for (const name of PLACES) {
    const leave = await new Promise<(() => void) | null>((told) => {
      const held = (lock: Lock | null) => {
        if (lock) return new Promise<void>(told);
        told(null);
        return undefined;
      };
      navigator.locks.request(name, { ifAvailable: true }, held).catch(() => {
        told(null);
      });
    });
    if (leave) return leave;
  }
  return null;
}

/** An API that cannot stream would answer with an error. */
async function streams(): Promise<boolean> {
  try {
    return (await capabilities()).streams;
  } catch {
    return false;
  }
}
