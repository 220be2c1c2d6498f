import { describe, expect, it } from "vitest";
import { type Buckets, bucketsSince, parse, percentile, reading, since } from "./metrics";

const TEXT = `# HELP stockade_outcomes_total Outcomes by code.
# TYPE stockade_outcomes_total counter
stockade_outcomes_total{code="insufficient_stock"} 3595
stockade_outcomes_total{code="ok"} 2772

stockade_commands_total{kind="reserve",outcome="insufficient_stock"} 12
stockade_http_request_seconds_bucket{route="POST /v1/reservations/{id}/confirm",le="0.001"} 4
stockade_http_request_seconds_bucket{route="POST /v1/reservations/{id}/confirm",le="+Inf"} 6
stockade_http_request_seconds_bucket{route="POST /v1/reservations/{id}/confirm",le="0.0001"} 1
stockade_sweep_lag_seconds 0.5
`;

describe("the text format", () => {
  it("is read with labels that hold braces, quotes and commas", () => {
    expect(parse('a{x="1,}",y="\\"q\\" \\\\ \\n"} 2 1700000000')).toEqual([
      { name: "a", labels: { x: "1,}", y: '"q" \\ \n' }, value: 2 },
    ]);
    expect(parse("b{} +Inf\nc 1e3")).toEqual([
      { name: "b", labels: {}, value: Infinity },
      { name: "c", labels: {}, value: 1000 },
    ]);
  });

  it("leaves out what is no sample", () => {
    expect(parse('x{y="1\nx{y} 1\n{} 1\nx\nx abc\n# x 1\n')).toEqual([]);
  });

  it("becomes a reading with buckets in order", () => {
    const read = reading(TEXT, 5);
    expect(read.outcomes.get("insufficient_stock")).toBe(3595);
    expect(read.commands.get("reserve insufficient_stock")).toBe(12);
    expect(read.gauges.get("stockade_sweep_lag_seconds")).toBe(0.5);
    expect(read.routes.get("POST /v1/reservations/{id}/confirm")).toEqual([
      [0.0001, 1],
      [0.001, 4],
      [Infinity, 6],
    ]);
  });
});

describe("what came since", () => {
  it("is the difference, and everything after a restart", () => {
    const before = new Map([["a", 5], ["b", 5]]);
    const now = new Map([["a", 7], ["b", 2], ["c", 1]]);
    expect([...since(now, before)]).toEqual([["a", 2], ["b", 2], ["c", 1]]);
  });

  it("holds for histograms", () => {
    const before: Buckets = [[1, 1], [Infinity, 2]];
    expect(bucketsSince([[1, 4], [Infinity, 7]], before)).toEqual([[1, 3], [Infinity, 5]]);
    expect(bucketsSince([[1, 1], [Infinity, 1]], before)).toEqual([[1, 1], [Infinity, 1]]);
  });
});

describe("percentiles", () => {
  const buckets: Buckets = [[1, 50], [2, 100], [Infinity, 101]];
  it("lie inside their bucket", () => {
    expect(percentile(buckets, 0.5)).toBeCloseTo(1.01, 5);
    expect(percentile(buckets, 0.25)).toBeCloseTo(0.505, 5);
  });
  it("say no more than the last bound", () => {
    expect(percentile(buckets, 1)).toBe(2);
    expect(percentile([], 0.5)).toBeNull();
    expect(percentile([[1, 0], [Infinity, 0]], 0.5)).toBeNull();
  });
});
