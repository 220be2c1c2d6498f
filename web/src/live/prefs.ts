/** What the reader chose: language, theme, single-key shortcuts. Kept in this browser. */
import type { Lang } from "../format";
import { preferred } from "../i18n";
import { Store } from "./store";

export type Theme = "system" | "light" | "dark";

export interface Prefs {
  lang: Lang;
  theme: Theme;
  /** Shortcuts without Ctrl or Alt; people who speak to their computer switch them off. */
  singleKeys: boolean;
}

const NAME = "stockade.prefs";

function load(): Prefs {
  const prefs: Prefs = { lang: preferred(navigator.languages), theme: "system", singleKeys: true };
  try {
    const kept = JSON.parse(localStorage.getItem(NAME) ?? "{}") as Partial<Record<keyof Prefs, unknown>>;
    if (kept.lang === "en" || kept.lang === "zh") prefs.lang = kept.lang;
    if (kept.theme === "light" || kept.theme === "dark") prefs.theme = kept.theme;
    if (kept.singleKeys === false) prefs.singleKeys = false;
  } catch {
    // Nothing that can be read was kept: as on a first visit.
  }
  return prefs;
}

export const prefs = new Store<Prefs>(load());

export function show({ lang, theme }: Prefs): void {
  const root = document.documentElement;
  root.lang = lang === "zh" ? "zh-CN" : "en";
  if (theme === "system") delete root.dataset["theme"];
  else root.dataset["theme"] = theme;
}

/** Changes some, and keeps only what was ever chosen. */
export function choose(change: Partial<Prefs>): void {
  const next = { ...prefs.get(), ...change };
  show(next);
  try {
    const kept = JSON.parse(localStorage.getItem(NAME) ?? "{}") as object;
    localStorage.setItem(NAME, JSON.stringify({ ...kept, ...change }));
  } catch {
    // A browser that keeps nothing forgets it with the tab.
  }
  prefs.set(next);
}

export const nextTheme = (theme: Theme): Theme => (theme === "system" ? "light" : theme === "light" ? "dark" : "system");
