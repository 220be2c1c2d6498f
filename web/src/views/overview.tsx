/** What an operator sees first: how the sale goes, what stops orders, which SKUs move. */
import { useEffect, useState } from "preact/hooks";
import { percentile } from "../api/metrics";
import { latency, rate } from "../format";
import type { Live } from "../live/feed";
import { OrdersChart } from "../parts/chart";
import { Panel } from "../parts/basic";
import { type Say, number } from "../parts/say";
import { Defence } from "./defence";
import { Latency } from "./latency";
import { StockTable } from "./stock_table";

function Figure(props: { name: string; value: string; unit?: string; tone?: string }) {
  return (
    <div class={`figure ${props.tone ?? ""}`}>
      <dt>{props.name}</dt>
      <dd>
        {props.value}
        {props.unit && <small>{props.unit}</small>}
      </dd>
    </div>
  );
}

function Figures({ state, say }: { state: Live; say: Say }) {
  const { series } = state;
  const point = series.point;
  const figures = state.overview?.figures;
  const refused = point ? point.sold_out + point.refused + point.failed : null;
  const p99 = percentile(series.route("POST /v1/reservations"), 0.99);
  const unrecorded = figures ? Math.max(0, figures.decided_entry - figures.recorded_entry) : null;
  const lag = series.last?.gauges.get("stockade_sweep_lag_seconds") ?? null;
  const perSecond = say("figure.per_second");
  return (
    <dl class="figures">
      <Figure name={say("figure.granted")} value={point ? rate(point.granted, say.lang) : "–"} unit={perSecond} />
      <Figure name={say("figure.refused")} value={refused === null ? "–" : rate(refused, say.lang)} unit={perSecond} />
      <Figure name={say("figure.latency")} value={latency(p99)} />
      <Figure name={say("figure.live")} value={figures ? number(say, figures.live_reservations) : "–"} />
      <Figure name={say("figure.waiting")} value={figures ? number(say, figures.waiting_commands) : "–"} />
      <Figure
        name={say("figure.unrecorded")}
        value={unrecorded === null ? "–" : number(say, unrecorded)}
        unit={say("figure.entries")}
      />
      <Figure
        name={say("figure.sweep_lag")}
        value={lag === null ? "–" : lag === 0 ? "0 s" : latency(lag)}
        tone={lag !== null && lag > 1 ? "warn" : ""}
      />
    </dl>
  );
}

/** A value a frame later: what is not the table is drawn in a frame of its own, so that neither makes one late. */
function useNextFrame<T>(value: T): T {
  const [late, setLate] = useState(value);
  useEffect(() => {
    const frame = requestAnimationFrame(() => setLate(value));
    return () => cancelAnimationFrame(frame);
  }, [value]);
  return late;
}

export function OverviewView({ state, say, look }: { state: Live; say: Say; look: string }) {
  const [order, setOrder] = useState<"active" | "lowest" | "name">("active");
  const [filter, setFilter] = useState("");
  const round = useNextFrame(state.round);
  return (
    <div class="overview">
      <Figures state={state} say={say} />
      <Panel title={say("orders.title")} class="orders">
        <OrdersChart series={state.series} round={round} look={look} say={say} />
      </Panel>
      <StockTable state={state} say={say} order={order} setOrder={setOrder} filter={filter} setFilter={setFilter} />
      <div class="side">
        <Defence series={state.series} round={round} say={say} />
        <Latency series={state.series} round={round} say={say} />
      </div>
    </div>
  );
}
