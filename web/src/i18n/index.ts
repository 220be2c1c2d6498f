/** Texts in the reader's language. */
import type { Lang } from "../format";
import { en } from "./en";
import { zh } from "./zh";

export type Text = keyof typeof en;
export type Fill = Record<string, string | number>;

export function text(lang: Lang, name: Text, fill?: Fill): string {
  const found: string = (lang === "zh" ? zh : en)[name];
  if (!fill) return found;
  return found.replaceAll(/\{(\w+)\}/g, (whole, key: string) => String(fill[key] ?? whole));
}

/** The language that a browser asks for first of those that are here. */
export function preferred(languages: readonly string[]): Lang {
  for (const language of languages) {
    const lower = language.toLowerCase();
    if (lower.startsWith("zh")) return "zh";
    if (lower.startsWith("en")) return "en";
  }
  return "en";
}
