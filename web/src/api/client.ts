/** Talks to the service. Every answer is a value: done, refused with numbers, or not known. */

import type {
  MovementPage,
  Overview,
  Problem,
  ReservationAnswer,
  ReservationPage,
  StockAnswer,
  StockPage,
} from "./types";

/** How long an answer may take. A command may have been done all the same: it is then sent again with its id. */
const ANSWER_WITHIN_MS = 15_000;

export type Result<T> =
  | { ok: true; value: T; status: number }
  /** The service said no. */
  | { ok: false; problem: Problem }
  /** No answer: nothing is known. */
  | { ok: false; unreachable: string };

const KEY = "stockade.key";

/** The key lives as long as the tab. */
export const key = {
  get: (): string | null => sessionStorage.getItem(KEY),
  set: (text: string | null): void => {
    if (text) sessionStorage.setItem(KEY, text);
    else sessionStorage.removeItem(KEY);
  },
};

async function ask(method: string, path: string, body?: string, extra?: HeadersInit): Promise<Result<Response>> {
  const headers = new Headers(extra);
  const bearer = key.get();
  if (bearer) headers.set("Authorization", `Bearer ${bearer}`);
  if (body !== undefined) headers.set("Content-Type", "application/json");
  try {
    const response = await fetch(path, {
      method,
      headers,
      ...(body === undefined ? {} : { body }),
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
      signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
    });
    if (response.ok) return { ok: true, value: response, status: response.status };
    return { ok: false, problem: await readProblem(response) };
  } catch (error) {
    return { ok: false, unreachable: error instanceof Error ? error.message : String(error) };
  }
}

/** What stands between may answer too, in a form of its own. */
async function readProblem(response: Response): Promise<Problem> {
  const text = await response.text();
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && "code" in value && typeof value.code === "string") {
      return value as Problem;
    }
  } catch {
    // Not JSON: told below as it is.
  }
  return {
    status: response.status,
    code: `http_${response.status}`,
    title: response.statusText,
    detail: text.slice(0, 200),
  };
}

async function json<T>(method: string, path: string, body?: string, extra?: HeadersInit): Promise<Result<T>> {
  const result = await ask(method, path, body, extra);
  if (!result.ok) return result;
  try {
    return { ok: true, value: (await result.value.json()) as T, status: result.status };
  } catch (error) {
    return { ok: false, unreachable: error instanceof Error ? error.message : String(error) };
  }
}

type Params = Record<string, string | number | null | undefined>;

export function query(params: Params): string {
  const given = Object.entries(params).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return text ? `?${text}` : "";
}

/** An id as a part of a path. */
export const segment = (id: string): string => encodeURIComponent(id);

export const overview = () => json<Overview>("GET", "/v1/overview");
export const stock = (sku: string) => json<StockAnswer>("GET", `/v1/stock/${segment(sku)}`);
export const stockPage = (params: Params) => json<StockPage>("GET", `/v1/stock${query(params)}`);
export const reservation = (id: string) => json<ReservationAnswer>("GET", `/v1/reservations/${segment(id)}`);
export const reservations = (params: Params) => json<ReservationPage>("GET", `/v1/reservations${query(params)}`);
export const movements = (params: Params) => json<MovementPage>("GET", `/v1/movements${query(params)}`);

export async function metrics(): Promise<Result<string>> {
  const result = await ask("GET", "/metrics");
  if (!result.ok) return result;
  try {
    return { ok: true, value: await result.value.text(), status: result.status };
  } catch (error) {
    return { ok: false, unreachable: error instanceof Error ? error.message : String(error) };
  }
}

/** A stock command: `revision` is the one that the operator saw; null: there was no such SKU. */
export function command(
  method: "PUT" | "POST" | "PATCH",
  sku: string,
  path: string,
  revision: number | null,
  body: Record<string, unknown>,
): Promise<Result<StockAnswer>> {
  const condition: HeadersInit = revision === null ? { "If-None-Match": "*" } : { "If-Match": `"${revision}"` };
  return json<StockAnswer>(method, `/v1/stock/${segment(sku)}${path}`, JSON.stringify(body), condition);
}

/** A new id for a command. Works also where the page did not come over TLS, unlike `crypto.randomUUID`. */
export function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `dashboard-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/** Whether a refused or unanswered command may have been done: it is then sent again with the same id. */
export function isUncertain(result: Result<unknown>): boolean {
  if (result.ok) return false;
  if ("unreachable" in result) return true;
  return result.problem.code === "outcome_unknown" || result.problem.code.startsWith("http_5");
}
