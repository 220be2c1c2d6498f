import { describe, expect, it } from "vitest";
import {
  figure,
  fromLocalInput,
  latency,
  milliseconds,
  moment,
  rate,
  readDelta,
  readFigure,
  signed,
  span,
  sum,
  toLocalInput,
  visible,
} from "./format";

const MAX = 9_007_199_254_740_991;

describe("figures", () => {
  it("are exact up to 2^53-1, and sums beyond", () => {
    expect(figure(MAX, "en")).toBe("9,007,199,254,740,991");
    expect(figure(MAX, "zh")).toBe("9,007,199,254,740,991");
    expect(figure(sum([MAX, MAX, 1]), "en")).toBe("18,014,398,509,481,983");
    expect(signed(-MAX, "en")).toBe("−9,007,199,254,740,991");
    expect([signed(0, "en"), signed(7, "en")]).toEqual(["·", "+7"]);
  });

  it("survive JSON on the way in and out", () => {
    const text = '{"on_hand":9007199254740991}';
    expect(JSON.stringify(JSON.parse(text))).toBe(text);
  });

  it("are read from what people type", () => {
    expect(readFigure("9007199254740991")).toBe(MAX);
    expect(readFigure("9,007,199,254,740,991")).toBe(MAX);
    expect(readFigure(" 1 000 ")).toBe(1000);
    expect(readFigure("0")).toBe(0);
    for (const bad of ["", "9007199254740992", "99999999999999999999", "1.5", "1e3", "0x10", "-1", "+1", "ten"]) {
      expect(readFigure(bad), bad).toBeNull();
    }
  });

  it("are read with a sign", () => {
    expect([readDelta("+5"), readDelta("-5"), readDelta("−5"), readDelta("5")]).toEqual([5, -5, -5, 5]);
    expect(readDelta("-9007199254740991")).toBe(-MAX);
    for (const bad of ["0", "-0", "", "-", "--1", "+-1", "1.5"]) expect(readDelta(bad), bad).toBeNull();
  });
});

describe("rates, latency, time", () => {
  it("keep their width", () => {
    expect([0, 0.01, 0.24, 9.94, 9.96, 12_345.6].map((value) => rate(value, "en"))).toEqual([
      "0",
      "<0.1",
      "0.2",
      "9.9",
      "10",
      "12,346",
    ]);
    expect([null, 0.000_25, 0.0123, 0.25, 1.5, 12].map(latency)).toEqual([
      "–",
      "0.25 ms",
      "12.3 ms",
      "250 ms",
      "1.50 s",
      "12.0 s",
    ]);
  });

  it("stand in a column of milliseconds", () => {
    const column = [null, 0.000_25, 0.0123, 0.25, 12].map((value) => milliseconds(value, "en"));
    expect(column).toEqual(["–", "0.25", "12.3", "250", "12,000"]);
  });

  it("say how long in two units", () => {
    expect(span(61_000, "en")).toBe("1 min 1 s");
    expect(span(61_000, "zh")).toBe("1 分 1 秒");
    expect(span(-90_000_000, "en")).toBe("1 d 1 h");
  });

  it("name the day only when it is another one", () => {
    const noon = new Date(2026, 10, 30, 12, 0, 5).getTime();
    expect(moment(noon, noon + 1000, "en")).toBe("12:00:05");
    expect(moment(noon, noon + 86_400_000, "en")).toBe("30/11/2026 12:00:05");
  });

  it("go through a field and back", () => {
    const at = new Date(2026, 0, 2, 3, 4, 5).getTime();
    expect(toLocalInput(at)).toBe("2026-01-02T03:04:05");
    expect(fromLocalInput(toLocalInput(at))).toBe(at);
    expect([toLocalInput(null), fromLocalInput(""), fromLocalInput("soon")]).toEqual(["", null, null]);
  });
});

describe("names", () => {
  it("show marks that hide or reorder text, and leave the rest", () => {
    expect(visible("a\u202eb")).toBe("a⟨U+202E⟩b");
    expect(visible("x\u200by")).toBe("x⟨U+200B⟩y");
    expect(visible("<b>é 库存 /%2F")).toBe("<b>é 库存 /%2F");
  });
});
