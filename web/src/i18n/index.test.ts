import { describe, expect, it } from "vitest";
import { preferred, text } from ".";
import { codeText } from "./codes";
import { en } from "./en";
import { zh } from "./zh";

const names = (text: string): string[] => [...text.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? "").sort();

describe("texts", () => {
  it("are there in both languages, and fill in the same", () => {
    expect(Object.keys(zh).sort()).toEqual(Object.keys(en).sort());
    for (const key of Object.keys(en) as (keyof typeof en)[]) {
      // A path of the API may stand in a text as it is written.
      const plain = (one: string) => one.replaceAll(/\/v1\S*/g, "");
      expect(names(plain(zh[key])), key).toEqual(names(plain(en[key])));
      expect(zh[key].trim(), key).not.toBe("");
    }
  });

  it("are all used", async () => {
    const { readdirSync, readFileSync } = await import("node:fs");
    const files = readdirSync("src", { recursive: true, encoding: "utf8" }).filter((file) => /\.tsx?$/.test(file));
    const code = files
      .filter((file) => !file.startsWith("i18n"))
      .map((file) => readFileSync(`src/${file}`, "utf8"))
      .join("\n");
    // Some are put together: `state.${state}`, `act.${name}_title`, `defence.${line}_about`.
    const isPutTogether = (key: string) => {
      const dot = key.lastIndexOf(".");
      return code.includes(`\`${key.slice(0, dot)}.\${`);
    };
    const unused = Object.keys(en).filter((key) => !code.includes(`"${key}"`) && !isPutTogether(key));
    expect(unused).toEqual([]);
  });

  it("are filled in once, whatever is filled in", () => {
    expect(text("en", "act.adjust_title", { sku: "{sku} $& <b>" })).toBe("Adjust {sku} $& <b>");
    expect(text("zh", "tenant", {})).toBe("租户 {tenant}");
  });

  it("follow the browser's order", () => {
    expect(preferred(["de-DE", "zh-Hant-TW", "en"])).toBe("zh");
    expect(preferred(["en-US", "zh-CN"])).toBe("en");
    expect(preferred(["fr"])).toBe("en");
  });

  it("name every code of the service", async () => {
    const { readFileSync } = await import("node:fs");
    const rows = readFileSync("../crates/server/src/http/code.rs", "utf8").matchAll(/=> \("(\w+)"/g);
    const codes = [...rows].map((match) => match[1] ?? "").filter((code) => !["ok", "replayed", "sealed"].includes(code));
    expect(codes.length).toBeGreaterThan(20);
    for (const code of codes) expect(codeText(code, "en"), code).not.toBe(code);
  });
});
