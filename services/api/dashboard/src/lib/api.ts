// Reading the API: JSON within a deadline, problems as errors that say what is wrong.

import { api } from "./config.js";
import type {
  ConfigMistake,
  DeleteAnswers,
  GetAnswers,
  PatchAnswers,
  PostAnswers,
  Problem,
} from "./api_types";

const DEADLINE_MS = 10_000;
const CHANGE_DEADLINE_MS = 30_000;

/** The answer to a GET; `data` is null where it still is the one called `etag`. */
export interface Answer<Data> {
  etag: string | null;
  data: Data | null;
}

export class ApiProblem extends Error {
  constructor(
    readonly status: number,
    detail: string,
    readonly mistakes: readonly ConfigMistake[] = [],
  ) {
    super(detail);
  }
}

async function requireGood(response: Response): Promise<Response> {
  if (response.ok) return response;
  const problem = (await response.json().catch(() => ({}))) as Partial<Problem>;
  const detail = problem.detail ?? `The API answered ${response.status}.`;
  throw new ApiProblem(response.status, detail, problem.mistakes);
}

function get(address: string): Promise<Response> {
  return fetch(address, { cache: "no-cache", signal: AbortSignal.timeout(DEADLINE_MS) });
}

/** The fields of an address by name; one with several values stands in it as often. */
export type Fields = Readonly<Record<string, string | readonly string[]>>;

/** An address: the fields that `path` names in braces stand in it, the others, if not empty, in its query. */
export function addressOf(path: string, fields: Fields): string {
  const given = Object.entries(fields)
    .flatMap(([name, values]) => [values].flat().map((value): [string, string] => [name, value]))
    .filter(([, value]) => value !== "");
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
  fields: Fields = {},
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

/** The headers of JSON, with the key if there is one. */
function jsonWith(key: string): Headers {
  const headers = new Headers({ "content-type": "application/json" });
  if (key) headers.set("authorization", `Bearer ${key}`);
  return headers;
}

/** POSTs JSON, with the key if there is one. Raises ApiProblem. */
export async function send<Path extends keyof PostAnswers>(
  path: Path,
  body: object,
  key: string,
  signal: AbortSignal,
): Promise<PostAnswers[Path]> {
  const response = await fetch(`${api}${path}`, {
    method: "POST",
    headers: jsonWith(key),
    body: JSON.stringify(body),
    signal: AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]),
  });
  return (await (await requireGood(response)).json()) as PostAnswers[Path];
}

interface ChangeAnswers {
  POST: PostAnswers;
  PATCH: PatchAnswers;
  DELETE: DeleteAnswers;
}

/** Changes something: sends JSON, as text or as an object, with the key if there is one. Raises ApiProblem. */
export async function change<
  Method extends keyof ChangeAnswers,
  Path extends keyof ChangeAnswers[Method] & string,
>(
  method: Method,
  path: Path,
  fields: Record<string, string>,
  body: object | string | null,
  key: string,
): Promise<ChangeAnswers[Method][Path]> {
  const response = await fetch(addressOf(path, fields), {
    method,
    headers: jsonWith(key),
    body: typeof body === "object" && body !== null ? JSON.stringify(body) : body,
    signal: AbortSignal.timeout(CHANGE_DEADLINE_MS),
  });
  return (await (await requireGood(response)).json()) as ChangeAnswers[Method][Path];
}

/** What went wrong, for a person. */
export function problemOf(error: unknown): string {
  return error instanceof ApiProblem ? error.message : "The API does not answer: try again.";
}
