// Requests to this server. Paths are relative to the page, so that they work behind a path prefix.

import { setServerTime } from "./time.js";

/** An error answer; `status` is 0 if there was no answer. */
export class ApiError extends Error {
  constructor(status, message, { code, field, fields, retryAfterSeconds } = {}) {
    super(message);
    Object.assign(this, { status, code, field, fields, retryAfterSeconds });
  }

  /** Whether the server refused the key. */
  get refusesKey() {
    return this.status === 401 || this.status === 403;
  }
}

const GONE = "The server does not answer.";

/** The response to a request. Throws ApiError for every status from 400 on, and AbortError if `signal` aborts. */
export async function request(url, options) {
  let response;
  try {
    response = await fetch(url, options);
  } catch (error) {
    throw error.name === "AbortError" ? error : new ApiError(0, GONE);
  }
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  throw new ApiError(response.status, body.error ?? `The server answered ${response.status}.`, {
    ...body,
    retryAfterSeconds: Number(response.headers.get("Retry-After")) || undefined,
  });
}

/** The JSON answer to a JSON request, null for an empty one. `version` is sent as If-Match. */
export async function call(method, path, { key, body, version, signal } = {}) {
  const headers = {};
  if (key) headers.Authorization = `Bearer ${key}`;
  if (body) headers["Content-Type"] = "application/json";
  if (version) headers["If-Match"] = `"${version}"`;
  const response = await request(path, { method, headers, signal, body: body && JSON.stringify(body) });
  setServerTime(response.headers.get("Date"));
  return response.status === 204 ? null : response.json();
}
