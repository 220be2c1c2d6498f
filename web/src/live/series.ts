/** Readings of `/metrics` over time: orders by outcome, what each line stopped, latency of the last seconds. */
import { type Buckets, bucketsSince, type Reading, since } from "../api/metrics";

export type OrderClass = "granted" | "replayed" | "sold_out" | "refused" | "failed";
export const ORDER_CLASSES: readonly OrderClass[] = ["granted", "replayed", "sold_out", "refused", "failed"];

const CLASSES: Record<string, OrderClass> = {
  ok: "granted",
  replayed: "replayed",
  insufficient_stock: "sold_out",
  overloaded: "failed",
  unavailable: "failed",
  outcome_unknown: "failed",
  corrupt: "failed",
};

/** Which commands are orders. */
const ORDERS = new Set(["reserve", "deduct"]);

export type Point = Record<OrderClass, number>;

export function orders(now: Reading, before: Reading): Point {
  const seconds = Math.max(0.001, (now.at - before.at) / 1000);
  const point: Point = { granted: 0, replayed: 0, sold_out: 0, refused: 0, failed: 0 };
  for (const [name, grown] of since(now.commands, before.commands)) {
    const [kind, outcome] = name.split(" ");
    if (kind === undefined || outcome === undefined || !ORDERS.has(kind)) continue;
    point[CLASSES[outcome] ?? "refused"] += grown / seconds;
  }
  // What the gate stopped never became a command; "sold out" it repeats for the tier.
  point.sold_out += grownBy(now.stopped, before.stopped, "sold_out") / seconds;
  for (const code of ["rate_limited", "overloaded"]) {
    const answered = grownBy(now.outcomes, before.outcomes, code);
    const decided = code === "overloaded" ? sumOf(since(now.commands, before.commands), code) : 0;
    point[code === "overloaded" ? "failed" : "refused"] += Math.max(0, answered - decided) / seconds;
  }
  return point;
}

function grownBy(now: Map<string, number>, before: Map<string, number>, name: string): number {
  return since(now, before).get(name) ?? 0;
}

function sumOf(grown: Map<string, number>, outcome: string): number {
  let total = 0;
  for (const [name, count] of grown) if (name.endsWith(` ${outcome}`)) total += count;
  return total;
}

export type LineOfDefence = "gate" | "tier" | "ledger";

/** What is counted by the line that stopped it, and belongs to the gate; from outside to inside. */
export const GATE_LINES = [
  "key",
  "shape",
  "key_rate",
  "owner_rate",
  "owner_interval",
  "owner_live",
  "cool_down",
  "sold_out",
  "shed",
  "backlog",
] as const;

const LEDGER = new Set(["unavailable", "outcome_unknown", "corrupt"]);
const DONE = new Set(["ok", "replayed", "sealed"]);
/** Counted by the gate's own lines. */
const GATE = new Set(["overloaded", "rate_limited"]);

/** The line that decided a command's outcome; null where it was done, or counted by the gate. */
export const lineOf = (outcome: string): LineOfDefence | null =>
  DONE.has(outcome) || GATE.has(outcome) ? null : LEDGER.has(outcome) ? "ledger" : "tier";

/** Commands by outcome, of all kinds. */
export function byOutcome(commands: Map<string, number>): Map<string, number> {
  const sums = new Map<string, number>();
  for (const [name, count] of commands) {
    const outcome = name.slice(name.indexOf(" ") + 1);
    sums.set(outcome, (sums.get(outcome) ?? 0) + count);
  }
  return sums;
}

/** How much history the chart shows, and over how much the latency is taken. */
const POINTS_MAX = 300;
const WINDOW_MS = 10_000;

export class Series {
  readonly times: number[] = [];
  readonly points: Point[] = [];
  #readings: Reading[] = [];

  take(reading: Reading, wallMs: number): void {
    const before = this.#readings.at(-1);
    if (before) {
      this.times.push(wallMs / 1000);
      this.points.push(orders(reading, before));
      if (this.times.length > POINTS_MAX) {
        this.times.shift();
        this.points.shift();
      }
    }
    this.#readings.push(reading);
    while (this.#readings.length > 2 && reading.at - (this.#readings[1]?.at ?? 0) >= WINDOW_MS) this.#readings.shift();
  }

  get last(): Reading | null {
    return this.#readings.at(-1) ?? null;
  }

  get point(): Point | null {
    return this.points.at(-1) ?? null;
  }

  /** Seconds that the window covers; 0 before the second reading. */
  get seconds(): number {
    const [first, last] = [this.#readings[0], this.#readings.at(-1)];
    return first && last ? (last.at - first.at) / 1000 : 0;
  }

  /** The latency of a route over the window. */
  route(name: string): Buckets {
    return bucketsSince(this.last?.routes.get(name) ?? [], this.#readings[0]?.routes.get(name));
  }

  commit(): Buckets {
    return bucketsSince(this.last?.commit ?? [], this.#readings[0]?.commit);
  }

  /** Commands by outcome over the window. */
  outcomes(): Map<string, number> {
    return byOutcome(since(this.last?.commands ?? new Map(), this.#readings[0]?.commands));
  }

  /** Requests by the line that stopped them over the window. */
  stopped(): Map<string, number> {
    return since(this.last?.stopped ?? new Map(), this.#readings[0]?.stopped);
  }
}
