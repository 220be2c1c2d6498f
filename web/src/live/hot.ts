/**
 * The SKUs that matter now: those of the first page of stock, and those that recent movements name. A movement carries
 * the counters after it, so a busy SKU needs no request of its own.
 */
import type { Counters, Movement, Settings, Stock } from "../api/types";

export interface Row {
  sku: string;
  locations: Map<string, Counters>;
  settings: Settings | null;
  revision: number | null;
  /** Changes per second, fading. */
  activity: number;
  /** When it last changed, by the page's clock; minus infinity: not that one knows. */
  changedAt: number;
  /** When it was last read whole. */
  readAt: number;
  /** It is on the first page, which is read anyway. */
  listed: boolean;
}

/** After so long a rate that is not fed has halved. */
const HALF_LIFE_MS = 4_000;
/** A SKU that has not changed for so long is no longer read by itself. */
const QUIET_AFTER_MS = 60_000;
/** Unlisted SKUs are forgotten past this many, quiet ones first. */
const KEPT_MAX = 1_000;

export class Hot {
  readonly rows = new Map<string, Row>();
  #lastNumber = 0;
  #lastAt = 0;

  #row(sku: string): Row {
    let row = this.rows.get(sku);
    if (!row) {
      row = {
        sku,
        locations: new Map(),
        settings: null,
        revision: null,
        activity: 0,
        changedAt: -Infinity,
        readAt: -Infinity,
        listed: false,
      };
      this.rows.set(sku, row);
    }
    return row;
  }

  /** Takes the newest movements, newest first; `limit` is how many were asked for. */
  moved(movements: Movement[], limit: number, now: number, serviceNow: number): void {
    const isFirst = this.#lastAt === 0;
    const fresh = movements.filter((movement) => movement.number > this.#lastNumber);
    // A service with another ledger counts from one again.
    const newest = movements[0]?.number ?? this.#lastNumber;
    this.#lastNumber = newest;
    const elapsed = isFirst ? 0 : now - this.#lastAt;
    this.#lastAt = now;
    // When there were more than one request shows, it is a sample of the time that it covers.
    let seconds = elapsed / 1000;
    const first = fresh.at(-1);
    if (fresh.length >= limit && fresh[0] && first) {
      seconds = Math.max(0.001, (fresh[0].at_ms - first.at_ms) / 1000);
    }
    const counts = new Map<string, number>();
    const seen = new Set<string>();
    for (const movement of fresh) {
      if (movement.sku === null) continue;
      counts.set(movement.sku, (counts.get(movement.sku) ?? 0) + 1);
      const row = this.#row(movement.sku);
      row.changedAt = Math.max(row.changedAt, now - Math.max(0, serviceNow - movement.at_ms));
      if (movement.location === null || movement.after === null) continue;
      // Newest first: what comes later in the list is older.
      const place = JSON.stringify([movement.sku, movement.location]);
      if (seen.has(place)) continue;
      seen.add(place);
      row.locations.set(movement.location, movement.after);
    }
    const keep = elapsed > 0 ? 0.5 ** (elapsed / HALF_LIFE_MS) : 1;
    for (const row of this.rows.values()) {
      const rate = seconds > 0 ? (counts.get(row.sku) ?? 0) / seconds : 0;
      row.activity = row.activity * keep + rate * (1 - keep);
      if (row.activity < 0.01) row.activity = 0;
    }
  }

  /** Takes SKUs as they were read, after the movements that were taken before. */
  read(stock: Stock[], now: number, listed: boolean): void {
    if (listed) for (const row of this.rows.values()) row.listed = false;
    for (const one of stock) {
      const row = this.#row(one.sku);
      row.locations = new Map(one.locations.map((at) => [at.location, at]));
      row.settings = one.settings;
      row.revision = one.revision;
      row.readAt = now;
      if (listed) row.listed = true;
    }
  }

  /** Which SKUs to read now: those that move and are not listed, the longest unread first. */
  stale(now: number, max: number): string[] {
    const due = [...this.rows.values()].filter(
      (row) => !row.listed && now - row.changedAt < QUIET_AFTER_MS && now - row.readAt > 2_000,
    );
    due.sort((a, b) => (a.readAt === b.readAt ? b.activity - a.activity : a.readAt - b.readAt));
    return due.slice(0, max).map((row) => row.sku);
  }

  forget(sku: string): void {
    this.rows.delete(sku);
  }

  prune(): void {
    const spare = [...this.rows.values()].filter((row) => !row.listed);
    if (spare.length <= KEPT_MAX) return;
    spare.sort((a, b) => a.changedAt - b.changedAt);
    for (const row of spare.slice(0, spare.length - KEPT_MAX)) this.rows.delete(row.sku);
  }
}

/** A row as it is shown. Sums may pass 2^53-1. */
export interface Shown {
  sku: string;
  onHand: bigint;
  reserved: bigint;
  sold: bigint;
  available: bigint;
  activity: number;
  changedAt: number;
  state: State;
}

export type State = "selling" | "low" | "sold_out" | "paused" | "not_open" | "closed";

export function stateOf(
  available: bigint,
  sold: bigint,
  reserved: bigint,
  settings: Settings | null,
  serviceNow: number,
): State {
  if (settings?.paused) return "paused";
  if (settings?.closes_at_ms != null && settings.closes_at_ms <= serviceNow) return "closed";
  if (settings?.opens_at_ms != null && settings.opens_at_ms > serviceNow) return "not_open";
  if (available === 0n) return "sold_out";
  // A tenth of what there was to sell.
  return available * 9n < sold + reserved ? "low" : "selling";
}

export function shown(row: Row, serviceNow: number): Shown {
  let onHand = 0n;
  let reserved = 0n;
  let sold = 0n;
  let available = 0n;
  for (const at of row.locations.values()) {
    onHand += BigInt(at.on_hand);
    reserved += BigInt(at.reserved);
    sold += BigInt(at.sold);
    available += BigInt(at.available);
  }
  return {
    sku: row.sku,
    onHand,
    reserved,
    sold,
    available,
    activity: row.activity,
    changedAt: row.changedAt,
    state: stateOf(available, sold, reserved, row.settings, serviceNow),
  };
}

export type Order = "active" | "lowest" | "name";

/** In doublings: a table whose rows change places every second cannot be read. */
const level = (activity: number): number => (activity < 0.1 ? 0 : 1 + Math.round(Math.log2(activity * 10)));
const byName = (a: Shown, b: Shown): number => (a.sku < b.sku ? -1 : a.sku > b.sku ? 1 : 0);
const later = (a: Shown, b: Shown): number => (a.changedAt === b.changedAt ? 0 : b.changedAt - a.changedAt);
const compare = (a: bigint, b: bigint): number => (a < b ? -1 : a > b ? 1 : 0);

export function sort(rows: Shown[], order: Order): Shown[] {
  const by: Record<Order, (a: Shown, b: Shown) => number> = {
    active: (a, b) => {
      const [one, other] = [level(a.activity), level(b.activity)];
      return other - one || (one === 0 ? later(a, b) : 0) || byName(a, b);
    },
    lowest: (a, b) => compare(a.available, b.available) || level(b.activity) - level(a.activity) || byName(a, b),
    name: byName,
  };
  return rows.sort(by[order]);
}
