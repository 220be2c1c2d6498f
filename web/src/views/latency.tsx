/** How long answers took in the last seconds, by route. */
import { type Buckets, count, percentile } from "../api/metrics";
import { milliseconds, rate } from "../format";
import type { Text } from "../i18n";
import type { Series } from "../live/series";
import { Panel } from "../parts/basic";
import { once } from "../parts/once";
import type { Say } from "../parts/say";

const ROUTES: readonly [Text, readonly string[]][] = [
  ["route.reserve", ["POST /v1/reservations"]],
  ["route.batch", ["POST /v1/reservations/batch"]],
  ["route.confirm", ["POST /v1/reservations/{id}/confirm"]],
  ["route.cancel", ["POST /v1/reservations/{id}/cancel"]],
  ["route.extend", ["POST /v1/reservations/{id}/extend"]],
  ["route.return", ["POST /v1/reservations/{id}/return"]],
  ["route.show_reservation", ["GET /v1/reservations/{id}"]],
  ["route.show_stock", ["GET /v1/stock/{sku}"]],
  [
    "route.stock",
    [
      "PUT /v1/stock/{sku}",
      "PATCH /v1/stock/{sku}",
      "POST /v1/stock/{sku}/adjustments",
      "POST /v1/stock/{sku}/transfers",
    ],
  ],
];

/** Histograms of the same bounds, added up. */
function merged(parts: Buckets[]): Buckets {
  const sums = new Map<number, number>();
  for (const part of parts) for (const [upTo, value] of part) sums.set(upTo, (sums.get(upTo) ?? 0) + value);
  return [...sums].sort((a, b) => a[0] - b[0]);
}

interface Props {
  series: Series;
  /** Drawn again when it changes. */
  round: number;
  say: Say;
}

export const Latency = once(({ series, say }: Props) => {
  const rows = ROUTES.map(([name, routes]) => ({ name, buckets: merged(routes.map((route) => series.route(route))) }));
  rows.push({ name: "latency.commit", buckets: series.commit() });
  const busy = rows.filter(({ buckets }) => count(buckets) > 0);
  const seconds = series.seconds;
  return (
    <Panel title={say("latency.title")} aside={<small>{say("latency.window")}</small>} class="latency">
      {busy.length === 0 ? (
        <p class="empty">{say("latency.none")}</p>
      ) : (
        <table>
          <thead>
            <tr>
              <th>{say("latency.route")}</th>
              <th class="num">{say("figure.per_second")}</th>
              <th class="num">p50</th>
              <th class="num">p95</th>
              <th class="num">p99</th>
            </tr>
          </thead>
          <tbody>
            {busy.map(({ name, buckets }) => (
              <tr key={name} class={name === "latency.commit" ? "apart" : ""}>
                <td>{say(name)}</td>
                <td class="num">{seconds > 0 ? rate(count(buckets) / seconds, say.lang) : "–"}</td>
                <td class="num">{milliseconds(percentile(buckets, 0.5), say.lang)}</td>
                <td class="num">{milliseconds(percentile(buckets, 0.95), say.lang)}</td>
                <td class="num">{milliseconds(percentile(buckets, 0.99), say.lang)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Panel>
  );
});
