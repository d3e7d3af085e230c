// What the API of these pages does besides reading; it stays the same while the API runs.

import { ApiProblem, read } from "./api";
import type { ApiCapabilities } from "./api_types";

/** Of an API of an earlier version, which does not tell: everything may be tried. */
const UNTOLD: ApiCapabilities = { starts: true, changes: true, streams: true, needs_key: true };

let known: ApiCapabilities | null = null;

/** Asked once. Raises what `fetch` raises where the API does not answer. */
export async function capabilities(): Promise<ApiCapabilities> {
  known ??= await ask();
  return known;
}

async function ask(): Promise<ApiCapabilities> {
  try {
    return (await read("/api/capabilities")).data ?? UNTOLD;
  } catch (error) {
    if (error instanceof ApiProblem && error.status === 404) return UNTOLD;
    throw error;
  }
}
