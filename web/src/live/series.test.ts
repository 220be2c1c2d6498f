import { expect, it } from "vitest";
import { reading } from "../api/metrics";
import { GATE_LINES, lineOf, orders, Series } from "./series";

const text = (granted: number, soldOut: number, limited: number) => `
stockade_commands_total{kind="reserve",outcome="ok"} ${granted}
stockade_commands_total{kind="show_stock",outcome="ok"} ${granted * 10}
stockade_commands_total{kind="deduct",outcome="insufficient_stock"} ${soldOut}
stockade_outcomes_total{code="rate_limited"} ${limited}
stockade_outcomes_total{code="insufficient_stock"} ${soldOut}
stockade_http_request_seconds_bucket{route="POST /v1/reservations",le="0.01"} ${granted}
stockade_http_request_seconds_bucket{route="POST /v1/reservations",le="+Inf"} ${granted}
`;

it("counts orders by outcome, what the gate stopped included, and reads not", () => {
  const point = orders(reading(text(30, 8, 4), 2000), reading(text(10, 0, 0), 0));
  expect(point).toEqual({ granted: 10, replayed: 0, sold_out: 4, refused: 2, failed: 0 });
});

it("keeps a window of ten seconds for latency", () => {
  const series = new Series();
  for (let second = 0; second <= 30; second++) series.take(reading(text(second * 5, second, 0), second * 1000), second * 1000);
  expect(series.seconds).toBeGreaterThanOrEqual(10);
  expect(series.seconds).toBeLessThanOrEqual(11);
  expect(series.route("POST /v1/reservations").at(-1)?.[1]).toBe(series.seconds * 5);
  expect(series.points).toHaveLength(30);
  expect(series.outcomes().get("insufficient_stock")).toBe(series.seconds);
});

it("gives each outcome to the line that decided it", () => {
  expect(["ok", "sealed", "rate_limited", "insufficient_stock", "unavailable", "new_code"].map(lineOf)).toEqual([
    null,
    null,
    null,
    "tier",
    "ledger",
    "tier",
  ]);
});

it("adds what the gate repeated as sold out", () => {
  const stopped = (count: number, at: number) => reading(`stockade_stopped_total{line="sold_out"} ${count}`, at);
  expect(orders(stopped(30, 3000), stopped(0, 0)).sold_out).toBe(10);
});

it("knows every line that the service counts", async () => {
  const { readFileSync } = await import("node:fs");
  const text = readFileSync("../crates/server/src/gate/mod.rs", "utf8");
  const lines = [...text.matchAll(/Self::\w+ => "(\w+)",/g)].map((match) => match[1]);
  // Those two are told apart by outcome.
  expect(lines.filter((line) => line !== "hot_tier" && line !== "unavailable")).toEqual(
    expect.arrayContaining([...GATE_LINES]),
  );
  expect(lines).toHaveLength(GATE_LINES.length + 2);
});
