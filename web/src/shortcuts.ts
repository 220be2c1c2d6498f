/** Keys that work anywhere in the page, but not while one types. */
import { useEffect } from "preact/hooks";
import { href } from "./route";

export interface Shortcuts {
  help: () => void;
  theme: () => void;
  language: () => void;
}

/** After `g` the next key must come within this. */
const SECOND_KEY_WITHIN_MS = 1_200;

export function useShortcuts(shortcuts: Shortcuts, on: boolean): void {
  useEffect(() => {
    if (!on) return;
    let wentAt = -Infinity;
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
      if (event.target instanceof Element && event.target.closest("input, textarea, select, dialog")) return;
      const isSecond = event.timeStamp - wentAt < SECOND_KEY_WITHIN_MS;
      wentAt = -Infinity;
      if (isSecond && event.key === "o") location.hash = href({ page: "overview" });
      else if (isSecond && event.key === "r") location.hash = href({ page: "reservations" });
      else if (event.key === "g") wentAt = event.timeStamp;
      else if (event.key === "/") document.getElementById("search")?.focus();
      else if (event.key === "?") shortcuts.help();
      else if (event.key === "t") shortcuts.theme();
      else if (event.key === "l") shortcuts.language();
      else if (event.key === "j" || event.key === "k") step(event.key === "j" ? 1 : -1);
      else return;
      event.preventDefault();
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  });
}

/** To the name in the next or previous row of the table one is in, or of the first one. */
function step(by: 1 | -1): void {
  const table = document.activeElement?.closest("table.rows") ?? document.querySelector("main table.rows");
  const rows = [...(table?.querySelectorAll("tbody tr") ?? [])].map((row) => row.querySelector<HTMLElement>("a.name"));
  const names = rows.filter((name) => name !== null);
  const here = names.findIndex((name) => name.closest("tr")?.contains(document.activeElement));
  names[here < 0 ? 0 : Math.max(0, Math.min(names.length - 1, here + by))]?.focus();
}
