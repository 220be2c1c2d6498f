/** Asks the service once a second while the page is seen, and keeps what it said. */
import * as api from "../api/client";
import { reading } from "../api/metrics";
import type { Overview, Problem, Scope } from "../api/types";
import { Hot } from "./hot";
import { Series } from "./series";
import { Store } from "./store";

const EVERY_MS = 1_000;
/** While the service does not answer it is asked less often. */
const AFTER_FAILURE_MS = [1_000, 2_000, 5_000, 10_000];
const MOVEMENTS = 200;
const LISTED = 200;
const LIST_EVERY_MS = 5_000;
/** Single SKUs read in one round. */
const SINGLE_MAX = 12;

export type Connection = "starting" | "ok" | "lost" | "locked";

export interface Live {
  connection: Connection;
  overview: Overview | null;
  /** Why the key is refused, or why there was no answer. */
  refusal: Problem | null;
  unreachable: string | null;
  /** When the last round was done, by the reader's clock. */
  at: number;
  /** The service's clock less the reader's. */
  offsetMs: number;
  hot: Hot;
  series: Series;
  /** The service has more SKUs than its first page. */
  hasMore: boolean;
  round: number;
}

function fresh(): Live {
  return {
    connection: "starting",
    overview: null,
    refusal: null,
    unreachable: null,
    at: 0,
    offsetMs: 0,
    hot: new Hot(),
    series: new Series(),
    hasMore: false,
    round: 0,
  };
}

export const live = new Store<Live>(fresh());

export const may = (state: Live, scope: Scope): boolean => state.overview?.scopes.includes(scope) ?? false;
export const serviceNow = (state: Live): number => Date.now() + state.offsetMs;

let listedAt = -Infinity;
let failures = 0;
let timer: ReturnType<typeof setTimeout> | undefined;
let busy = false;
/** A new key starts over; a round that began before it must not bring back what the old key saw. */
let generation = 0;

async function round(): Promise<void> {
  const mine = generation;
  const state = live.get();
  const overview = await api.overview();
  if (mine !== generation) return;
  if (!overview.ok) {
    failures++;
    const isRefusal = "problem" in overview && [401, 403].includes(overview.problem.status);
    live.set({
      ...state,
      connection: isRefusal ? "locked" : "lost",
      refusal: "problem" in overview ? overview.problem : null,
      unreachable: "unreachable" in overview ? overview.unreachable : null,
      round: state.round + 1,
    });
    return;
  }
  failures = 0;
  let { hasMore } = state;
  const { hot, series } = state;
  if (overview.value.scopes.includes("read")) {
    const [text, moved] = await Promise.all([api.metrics(), api.movements({ limit: MOVEMENTS })]);
    if (mine !== generation) return;
    if (text.ok) series.take(reading(text.value, performance.now()), overview.value.at_ms);
    if (moved.ok) hot.moved(moved.value.movements, MOVEMENTS, performance.now(), overview.value.at_ms);
    // After the movements: what is read now is newer than they are.
    const now = performance.now();
    if (now - listedAt >= LIST_EVERY_MS) {
      // One more than is listed tells whether there are more.
      const page = await api.stockPage({ limit: LISTED + 1 });
      if (mine !== generation) return;
      if (page.ok) {
        listedAt = now;
        hot.read(page.value.stock.slice(0, LISTED), performance.now(), true);
        hasMore = page.value.stock.length > LISTED;
      }
    }
    const single = hot.stale(now, SINGLE_MAX);
    const read = await Promise.all(single.map((sku) => api.stock(sku)));
    if (mine !== generation) return;
    read.forEach((one, index) => {
      const sku = single[index];
      if (one.ok) hot.read([one.value.stock], performance.now(), false);
      else if (sku !== undefined && "problem" in one && one.problem.code === "unknown_sku") hot.forget(sku);
    });
    hot.prune();
  }
  live.set({
    ...state,
    connection: "ok",
    overview: overview.value,
    refusal: null,
    unreachable: null,
    at: Date.now(),
    offsetMs: overview.value.at_ms - Date.now(),
    hasMore,
    round: state.round + 1,
  });
}

async function turn(): Promise<void> {
  timer = undefined;
  if (busy || document.hidden) return;
  busy = true;
  const began = performance.now();
  const mine = generation;
  try {
    await round();
  } finally {
    busy = false;
    const pause = failures === 0 ? EVERY_MS : (AFTER_FAILURE_MS[Math.min(failures, AFTER_FAILURE_MS.length) - 1] ?? EVERY_MS);
    const wait = mine === generation ? Math.max(50, pause - (performance.now() - began)) : 0;
    if (!document.hidden) timer = setTimeout(() => void turn(), wait);
  }
}

/** Asks at once. */
export function refresh(): void {
  clearTimeout(timer);
  void turn();
}

/** Forgets everything that was seen with another key. */
export function useKey(text: string | null): void {
  api.key.set(text);
  generation++;
  listedAt = -Infinity;
  failures = 0;
  live.set(fresh());
  refresh();
}

/** A SKU was changed from here: read its list again in the next round. */
export function touched(): void {
  listedAt = -Infinity;
}

export function start(): void {
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) refresh();
  });
  refresh();
}
