// Requests to the server. Errors come back in words for people: what went wrong, and what to do.

import { at, logIn } from "./base.js";

/** @import { paths } from "answers" */

/**
 * The JSON answer of a path, by the API's description. `make check` writes them to build/answers.d.ts.
 *
 * @template {string} Path
 * @typedef {Path extends keyof paths
 *   ? paths[Path] extends { get: { responses: { 200: { content: { "application/json": infer Body } } } } } ? Body : never
 *   : never} Answer
 */

export class ApiError extends Error {
  /**
   * @param {string} message
   * @param {string} [hint]
   * @param {number} [status]
   */
  constructor(message, hint = "", status = 0) {
    super(message);
    this.hint = hint;
    this.status = status;
  }
}

/**
 * Return whether a request was aborted by its signal, because its page was closed.
 *
 * @param {unknown} error
 */
export const isAborted = (error) => error instanceof Error && error.name === "AbortError";

/**
 * Request JSON. `params` with an empty value are left out.
 *
 * @template {string} Path
 * @param {Path} path
 * @param {Record<string, unknown>} [params]
 * @param {{ signal?: AbortSignal }} [options]
 * @returns {Promise<Answer<Path>>}
 */
export async function get(path, params = {}, { signal } = {}) {
  let response;
  try {
    response = await fetch(at(`${path}${query(params)}`), { signal, headers: { accept: "application/json" } });
  } catch (error) {
    if (isAborted(error)) throw error;
    throw new ApiError(
      "The dashboard's server does not answer.",
      "It may have been stopped; this page tries again by itself.",
    );
  }
  const body = await response.json().catch((error) => {
    if (isAborted(error)) throw error; // its page was closed while the answer was on its way
    if (response.ok) throw new ApiError("The server's answer broke off.", "This page tries again by itself.");
    return {};
  });
  if (response.status === 401 && body.hint?.startsWith("log in at ")) logIn(); // a session that has ended
  if (!response.ok)
    throw new ApiError(body.error ?? `The server answered ${response.status}.`, body.hint ?? "", response.status);
  return body;
}

/**
 * Return parameters as a query, "" if there are none.
 *
 * @param {Record<string, unknown>} params
 */
export function query(params) {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(params))
    if (value !== "" && value !== null && value !== undefined) search.append(name, String(value));
  return search.size ? `?${search}` : "";
}

/**
 * Return a path whose segments may contain anything, also "/".
 *
 * @param {...string} segments
 * @returns {`/${string}`}
 */
export const pathOf = (...segments) => `/${segments.map((segment) => encodeURIComponent(guarded(segment))).join("/")}`;

// A browser resolves the segments "." and "..", also encoded ones: such an id gets the prefix "~", and an id that looks
// like a prefixed one gets one more. heartwheel/http_server/paths.py reads the same.
/** @param {string} segment */
const guarded = (segment) => (/^~*\.{1,2}$/.test(segment) ? `~${segment}` : segment);

/**
 * Return the id in a decoded segment of a path from `pathOf`.
 *
 * @param {string} text
 */
export const segmentOf = (text) => (/^~+\.{1,2}$/.test(text) ? text.slice(1) : text);
