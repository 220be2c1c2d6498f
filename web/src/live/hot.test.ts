import { describe, expect, it } from "vitest";
import type { Movement, Stock } from "../api/types";
import { Hot, shown, sort, stateOf } from "./hot";

const SETTINGS = {
  limit_per_owner: null,
  opens_at_ms: null,
  closes_at_ms: null,
  paused: false,
  order: [],
  split: true,
  group: null,
};

function stock(sku: string, available: number): Stock {
  const counters = { on_hand: available, reserved: 0, sold: 0, safety_stock: 0, available };
  return { sku, revision: 1, locations: [{ location: "default", ...counters }], settings: SETTINGS };
}

function movement(number: number, sku: string, available: number, atMs = 0): Movement {
  const after = { on_hand: available, reserved: 0, sold: 0, safety_stock: 0, available };
  return {
    number,
    at_ms: atMs,
    kind: "confirm",
    actor: "http",
    reason: "",
    reservation: "o",
    owner: "u",
    command: null,
    sku,
    location: "default",
    on_hand: -1,
    reserved: 0,
    sold: 1,
    after,
  };
}

const names = (hot: Hot, order: "active" | "lowest" | "name") =>
  sort([...hot.rows.values()].map((row) => shown(row, 0)), order).map((row) => row.sku);

describe("the SKUs that matter", () => {
  it("take the newest counters of a page that comes newest first", () => {
    const hot = new Hot();
    hot.read([stock("A", 10)], 0, true);
    hot.moved([movement(3, "A", 7), movement(2, "A", 8)], 200, 1000, 0);
    expect(shown(hot.rows.get("A")!, 0).available).toBe(7n);
    // Nothing new: an older page must not bring old counters back.
    hot.read([stock("A", 5)], 1500, true);
    hot.moved([movement(3, "A", 7), movement(2, "A", 8)], 200, 2000, 0);
    expect(shown(hot.rows.get("A")!, 0).available).toBe(5n);
  });

  it("are ordered by what moves, by what is left, by name", () => {
    const hot = new Hot();
    hot.read([stock("A", 10), stock("B", 3), stock("C", 5)], 0, true);
    hot.moved([movement(1, "B", 3)], 200, 1000, 0);
    hot.moved([movement(4, "C", 4), movement(3, "C", 5), movement(2, "A", 9)], 200, 2000, 0);
    expect(names(hot, "active")).toEqual(["C", "A", "B"]);
    expect(names(hot, "lowest")).toEqual(["B", "C", "A"]);
    expect(names(hot, "name")).toEqual(["A", "B", "C"]);
  });

  it("come up by moving, are read, and rest", () => {
    const hot = new Hot();
    hot.moved([movement(1, "X", 1)], 200, 1000, 0);
    expect(hot.stale(1000, 5)).toEqual(["X"]);
    hot.read([stock("X", 1)], 1000, false);
    expect(hot.stale(2000, 5)).toEqual([]);
    expect(hot.stale(4000, 5)).toEqual(["X"]);
    expect(hot.stale(100_000, 5)).toEqual([]);
  });

  it("rate a full page by the time that it covers", () => {
    const hot = new Hot();
    hot.moved([movement(1, "A", 1, 1)], 4, 1000, 1);
    const full = [5, 4, 3, 2].map((number) => movement(number, "A", 1, number * 10));
    hot.moved(full, 4, 1_001_000, 50);
    // Four in 30 ms, however long the page was not looked at.
    expect(hot.rows.get("A")!.activity).toBeGreaterThan(100);
  });

  it("know their state", () => {
    expect(stateOf(0n, 5n, 0n, SETTINGS, 0)).toBe("sold_out");
    expect(stateOf(0n, 5n, 0n, { ...SETTINGS, paused: true }, 0)).toBe("paused");
    expect(stateOf(5n, 0n, 0n, { ...SETTINGS, opens_at_ms: 10 }, 0)).toBe("not_open");
    expect(stateOf(5n, 0n, 0n, { ...SETTINGS, closes_at_ms: 10 }, 10)).toBe("closed");
    expect(stateOf(10n, 100n, 0n, null, 0)).toBe("low");
    expect(stateOf(50n, 100n, 0n, null, 0)).toBe("selling");
  });
});
