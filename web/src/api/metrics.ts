/** Reads Prometheus's text format, and turns two readings into rates and percentiles. */

export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

const ESCAPES: Record<string, string> = { n: "\n", '"': '"', "\\": "\\" };

/** The labels between braces, from `at`; gives them and where they end. */
function readLabels(line: string, at: number): { labels: Record<string, string>; end: number } | null {
  const labels: Record<string, string> = {};
  let i = at;
  for (;;) {
    while (line[i] === " " || line[i] === ",") i++;
    if (line[i] === "}") return { labels, end: i + 1 };
    const equals = line.indexOf("=", i);
    if (equals < 0 || line[equals + 1] !== '"') return null;
    const name = line.slice(i, equals).trim();
    let value = "";
    i = equals + 2;
    for (;;) {
      const char = line[i];
      if (char === undefined) return null;
      if (char === '"') break;
      if (char === "\\") {
        const next = line[i + 1];
        if (next === undefined) return null;
        value += ESCAPES[next] ?? `\\${next}`;
        i += 2;
      } else {
        value += char;
        i++;
      }
    }
    labels[name] = value;
    i++;
  }
}

/** All samples; lines that are none are left out. */
export function parse(text: string): Sample[] {
  const samples: Sample[] = [];
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    const match = /^[a-zA-Z_:][\w:]*/.exec(line);
    if (!match) continue;
    const name = match[0];
    let rest = name.length;
    let labels: Record<string, string> = {};
    if (line[rest] === "{") {
      const read = readLabels(line, rest + 1);
      if (!read) continue;
      labels = read.labels;
      rest = read.end;
    }
    const word = line.slice(rest).trim().split(/\s+/)[0] ?? "";
    const value = word === "+Inf" ? Infinity : word === "-Inf" ? -Infinity : Number(word);
    if (word === "" || (Number.isNaN(value) && word !== "NaN")) continue;
    samples.push({ name, labels, value });
  }
  return samples;
}

/** A histogram's cumulative counts by upper bound, in rising order; the last bound is infinite. */
export type Buckets = [bound: number, count: number][];

/** What the page needs of one reading. */
export interface Reading {
  /** When it was taken, by the page's own monotonic clock. */
  at: number;
  /** Commands by `kind outcome`. */
  commands: Map<string, number>;
  /** Answers by code. */
  outcomes: Map<string, number>;
  /** Requests that were not done, by the line that stopped them. */
  stopped: Map<string, number>;
  /** Latency by route. */
  routes: Map<string, Buckets>;
  commit: Buckets;
  gauges: Map<string, number>;
}

export function reading(text: string, at: number): Reading {
  const result: Reading = {
    at,
    commands: new Map(),
    outcomes: new Map(),
    stopped: new Map(),
    routes: new Map(),
    commit: [],
    gauges: new Map(),
  };
  for (const { name, labels, value } of parse(text)) {
    if (name === "stockade_commands_total") {
      result.commands.set(`${labels["kind"]} ${labels["outcome"]}`, value);
    } else if (name === "stockade_outcomes_total") {
      result.outcomes.set(labels["code"] ?? "", value);
    } else if (name === "stockade_stopped_total") {
      result.stopped.set(labels["line"] ?? "", value);
    } else if (name === "stockade_http_request_seconds_bucket") {
      const route = labels["route"] ?? "";
      let buckets = result.routes.get(route);
      if (!buckets) result.routes.set(route, (buckets = []));
      buckets.push([bound(labels["le"]), value]);
    } else if (name === "stockade_commit_seconds_bucket") {
      result.commit.push([bound(labels["le"]), value]);
    } else if (Object.keys(labels).length === 0) {
      result.gauges.set(name, value);
    }
  }
  for (const buckets of [...result.routes.values(), result.commit]) buckets.sort((a, b) => a[0] - b[0]);
  return result;
}

function bound(text: string | undefined): number {
  return text === undefined || text === "+Inf" ? Infinity : Number(text);
}

/** What came since an earlier reading. A counter that fell belongs to a service that was started again: all of it is new. */
export function since(now: Map<string, number>, before: Map<string, number> | undefined): Map<string, number> {
  const grown = new Map<string, number>();
  for (const [name, value] of now) {
    const old = before?.get(name) ?? 0;
    grown.set(name, value >= old ? value - old : value);
  }
  return grown;
}

export function bucketsSince(now: Buckets, before: Buckets | undefined): Buckets {
  const total = now.at(-1)?.[1] ?? 0;
  const old = new Map(before);
  const restarted = total < (before?.at(-1)?.[1] ?? 0);
  return now.map(([upTo, count]) => [upTo, restarted ? count : Math.max(0, count - (old.get(upTo) ?? 0))]);
}

/**
 * The value under which `share` of the observations lie, by linear interpolation inside its bucket; null without any.
 * Past the last finite bound nothing is known but that bound.
 */
export function percentile(buckets: Buckets, share: number): number | null {
  const total = buckets.at(-1)?.[1] ?? 0;
  if (total <= 0) return null;
  const rank = share * total;
  let below = 0;
  let lower = 0;
  for (const [upTo, count] of buckets) {
    if (count >= rank && count > below) {
      if (upTo === Infinity) return lower;
      return lower + ((upTo - lower) * (rank - below)) / (count - below);
    }
    below = count;
    if (upTo !== Infinity) lower = upTo;
  }
  return lower;
}

export const count = (buckets: Buckets): number => buckets.at(-1)?.[1] ?? 0;
