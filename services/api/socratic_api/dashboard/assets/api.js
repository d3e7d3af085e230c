// Reading the API: JSON within a deadline, problems as errors that say what is wrong.

const DEADLINE_MS = 10_000;

export class ApiProblem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

async function answer(response) {
  if (response.ok) return response.json();
  const problem = await response.json().catch(() => ({}));
  throw new ApiProblem(response.status, problem.detail ?? `The API answered ${response.status}.`);
}

/** The answer to a GET: `{etag, data}`, with `data` null where it still is the one called `etag`. */
export async function read(address, etag = null) {
  const response = await fetch(address, {
    cache: "no-cache",
    signal: AbortSignal.timeout(DEADLINE_MS),
  });
  const now = response.headers.get("etag");
  if (response.ok && etag !== null && now === etag) return { etag, data: null };
  return { etag: now, data: await answer(response) };
}

export async function send(address, body, signal) {
  const deadline = AbortSignal.timeout(DEADLINE_MS);
  const response = await fetch(address, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    signal: signal ? AbortSignal.any([signal, deadline]) : deadline,
  });
  return answer(response);
}
