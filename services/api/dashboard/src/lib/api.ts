// Reading the API: JSON within a deadline, problems as errors that say what is wrong.

import { api } from "./config.js";
import type { GetAnswers, PostAnswers, Problem } from "./api_types";

const DEADLINE_MS = 10_000;

/** The answer to a GET; `data` is null where it still is the one called `etag`. */
export interface Answer<Data> {
  etag: string | null;
  data: Data | null;
}

export class ApiProblem extends Error {
  constructor(
    readonly status: number,
    detail: string,
  ) {
    super(detail);
  }
}

async function requireGood(response: Response): Promise<Response> {
  if (response.ok) return response;
  const problem = (await response.json().catch(() => ({}))) as Partial<Problem>;
  throw new ApiProblem(response.status, problem.detail ?? `The API answered ${response.status}.`);
}

function get(address: string): Promise<Response> {
  return fetch(address, { cache: "no-cache", signal: AbortSignal.timeout(DEADLINE_MS) });
}

/** An address: the fields that `path` names in braces stand in it, the others, if not empty, in its query. */
export function addressOf(path: keyof GetAnswers, fields: Record<string, string>): string {
  const given = Object.entries(fields).filter(([, value]) => value !== "");
  const isInPath = ([name]: [string, string]) => path.includes(`{${name}}`);
  const text = new URLSearchParams(given.filter((field) => !isInPath(field))).toString();
  const place = given
    .filter(isInPath)
    .reduce<string>(
      (whole, [name, value]) => whole.replace(`{${name}}`, () => encodeURIComponent(value)),
      path,
    );
  return `${api}${place}${text ? `?${text}` : ""}`;
}

/** GETs an address. Raises ApiProblem where the API answers with a problem. */
export async function read<Path extends keyof GetAnswers>(
  path: Path,
  fields: Record<string, string> = {},
  etag: string | null = null,
): Promise<Answer<GetAnswers[Path]>> {
  const response = await get(addressOf(path, fields));
  const now = response.headers.get("etag");
  if (response.ok && etag !== null && now === etag) return { etag, data: null };
  const data = (await (await requireGood(response)).json()) as GetAnswers[Path];
  return { etag: now, data };
}

/** The text at an address, as it came. Raises ApiProblem. */
export async function readText(address: string): Promise<string> {
  return (await requireGood(await get(address))).text();
}

/** POSTs JSON. Raises ApiProblem. */
export async function send<Path extends keyof PostAnswers>(
  path: Path,
  body: object,
  signal: AbortSignal,
): Promise<PostAnswers[Path]> {
  const response = await fetch(`${api}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    signal: AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]),
  });
  return (await (await requireGood(response)).json()) as PostAnswers[Path];
}
