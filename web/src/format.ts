/** Numbers, times and ids as people read them. Figures stay exact up to 2^53-1, and sums of them beyond that. */

export type Lang = "en" | "zh";

const LOCALES: Record<Lang, string> = { en: "en-GB", zh: "zh-CN" };

/** The largest figure the service keeps. */
export const FIGURE_MAX = 9_007_199_254_740_991n;

const cache = new Map<string, Intl.NumberFormat | Intl.DateTimeFormat>();

function kept<T extends Intl.NumberFormat | Intl.DateTimeFormat>(name: string, make: () => T): T {
  let format = cache.get(name);
  if (!format) cache.set(name, (format = make()));
  return format as T;
}

/** A whole number with groups of digits; nothing is rounded. */
export function figure(value: number | bigint, lang: Lang): string {
  return kept(`n${lang}`, () => new Intl.NumberFormat(LOCALES[lang], { maximumFractionDigits: 0 })).format(value);
}

/** A change: with its sign, a true minus. Zero is a dot, so that changes stand out in a column. */
export function signed(value: number, lang: Lang): string {
  if (value === 0) return "·";
  return `${value < 0 ? "−" : "+"}${figure(Math.abs(value), lang)}`;
}

/** A rate: whole from 10 on, one digit below. */
export function rate(perSecond: number, lang: Lang): string {
  if (perSecond >= 9.95) return figure(Math.round(perSecond), lang);
  if (perSecond > 0 && perSecond < 0.05) return "<0.1";
  return perSecond === 0 ? "0" : perSecond.toFixed(1);
}

/** Seconds as milliseconds, or as seconds from one on; three digits at most. */
export function latency(seconds: number | null): string {
  if (seconds === null) return "–";
  const ms = seconds * 1000;
  if (ms < 9.995) return `${ms.toFixed(2)} ms`;
  if (ms < 99.95) return `${ms.toFixed(1)} ms`;
  if (ms < 999.5) return `${ms.toFixed(0)} ms`;
  return `${seconds.toFixed(seconds < 9.995 ? 2 : 1)} s`;
}

/** Seconds as a figure of milliseconds for a column: three digits, more only past a second. */
export function milliseconds(seconds: number | null, lang: Lang): string {
  if (seconds === null) return "–";
  const ms = seconds * 1000;
  if (ms < 9.995) return ms.toFixed(2);
  return ms < 99.95 ? ms.toFixed(1) : figure(Math.round(ms), lang);
}

/** The time of day, and the date when it is another day. */
export function moment(ms: number, now: number, lang: Lang): string {
  const date = new Date(ms);
  const time = kept(
    `t${lang}`,
    () => new Intl.DateTimeFormat(LOCALES[lang], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false }),
  ).format(date);
  if (date.toDateString() === new Date(now).toDateString()) return time;
  const day = kept(
    `d${lang}`,
    () => new Intl.DateTimeFormat(LOCALES[lang], { year: "numeric", month: "2-digit", day: "2-digit" }),
  ).format(date);
  return `${day} ${time}`;
}

const UNITS: Record<Lang, [day: string, hour: string, minute: string, second: string]> = {
  en: ["d", "h", "min", "s"],
  zh: ["天", "小时", "分", "秒"],
};

/** How long: the two largest units. Negative spans are shown as their length. */
export function span(ms: number, lang: Lang): string {
  const [day, hour, minute, second] = UNITS[lang];
  const seconds = Math.floor(Math.abs(ms) / 1000);
  if (seconds < 60) return `${seconds} ${second}`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} ${minute} ${seconds % 60} ${second}`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours} ${hour} ${minutes % 60} ${minute}`;
  return `${Math.floor(hours / 24)} ${day} ${hours % 24} ${hour}`;
}

/** What an operator typed as a figure: digits only, up to 2^53-1; null when it is none. Blanks and commas may group. */
export function readFigure(text: string): number | null {
  const digits = text.replaceAll(/[\s,_]/g, "");
  if (!/^\d{1,16}$/.test(digits)) return null;
  return BigInt(digits) <= FIGURE_MAX ? Number(digits) : null;
}

/** The same with a sign, and not zero. */
export function readDelta(text: string): number | null {
  const trimmed = text.trim().replace("−", "-");
  const value = readFigure(trimmed.replace(/^[+-]/, ""));
  if (value === null || value === 0) return null;
  return trimmed.startsWith("-") ? -value : value;
}

/** A sum that may pass 2^53-1. */
export function sum(values: Iterable<number>): bigint {
  let total = 0n;
  for (const value of values) total += BigInt(value);
  return total;
}

/** Names may hold marks that reorder or hide text; they are shown by their code point. Everything else stays as it is. */
export function visible(name: string): string {
  return name.replaceAll(
    /[\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    (mark) => `⟨U+${mark.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0")}⟩`,
  );
}

/** For `<input type="datetime-local">`, in the reader's own time zone. */
export function toLocalInput(ms: number | null): string {
  if (ms === null) return "";
  const date = new Date(ms);
  const two = (value: number) => String(value).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}T${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

export function fromLocalInput(text: string): number | null {
  if (text === "") return null;
  const ms = new Date(text).getTime();
  return Number.isNaN(ms) ? null : ms;
}
