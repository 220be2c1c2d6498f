/** Orders per second by outcome, stacked. The legend is ours: it shows the newest values, or those under the pointer. */
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { rate } from "../format";
import { ORDER_CLASSES, type OrderClass, type Series } from "../live/series";
import type { Say } from "./say";

const HEIGHT = 196;

/** Each layer is drawn from zero to the sum of it and those under it, the highest first, so that fills do not mix. */
function stacked(series: Series): uPlot.AlignedData {
  const sums = series.points.map(() => 0);
  const layers = ORDER_CLASSES.map((name) =>
    series.points.map((point, index) => {
      const sum = (sums[index] ?? 0) + point[name];
      sums[index] = sum;
      return sum;
    }),
  );
  return [[...series.times], ...layers.reverse()] as uPlot.AlignedData;
}

const NAMES = [...ORDER_CLASSES].reverse();

function colors(): Record<OrderClass | "text" | "grid", string> {
  const style = getComputedStyle(document.documentElement);
  const read = (name: string) => style.getPropertyValue(name).trim();
  return {
    granted: read("--series-granted"),
    replayed: read("--series-replayed"),
    sold_out: read("--series-sold-out"),
    refused: read("--series-refused"),
    failed: read("--series-failed"),
    text: read("--quiet"),
    grid: read("--line"),
  };
}

/** From the times themselves: what uPlot makes of a single point is a whole day. */
function spread(times: ArrayLike<number>): [number, number] {
  const last = times[times.length - 1] ?? Date.now() / 1000;
  return [Math.min(last - 60, times[0] ?? last), last];
}

function options(width: number, say: Say, onCursor: (index: number | null) => void): uPlot.Options {
  const color = colors();
  const font = "11px system-ui, sans-serif";
  const two = (value: number) => String(value).padStart(2, "0");
  const clock = (seconds: number) => {
    const at = new Date(seconds * 1000);
    return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  };
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
    scales: {
      // From one minute on it grows with what was seen, up to five.
      x: { time: true, range: (u) => spread(u.data[0]) },
      y: { range: (_u, _min, max) => [0, Math.max(1, max * 1.08)] },
    },
    axes: [
      {
        stroke: color.text,
        font,
        size: 24,
        space: 90,
        grid: { show: false },
        ticks: { stroke: color.grid, size: 4, width: 1 },
        values: (_u, splits) => splits.map(clock),
      },
      {
        stroke: color.text,
        font,
        size: 52,
        space: 34,
        grid: { stroke: color.grid, width: 1 },
        ticks: { show: false },
        values: (_u, splits) => splits.map((value) => rate(value, say.lang)),
      },
    ],
    series: [
      {},
      ...NAMES.map((name) => ({ stroke: color[name], fill: color[name], width: 0, points: { show: false } })),
    ],
    hooks: { setCursor: [(u) => onCursor(u.cursor.idx ?? null)] },
  };
}

export function OrdersChart(props: { series: Series; round: number; look: string; say: Say }) {
  const { series, say } = props;
  const box = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const [cursor, setCursor] = useState<number | null>(null);

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const plot = new uPlot(options(Math.max(240, element.clientWidth), say, setCursor), stacked(series), element);
    chart.current = plot;
    const watcher = new ResizeObserver(() => {
      const width = Math.max(240, element.clientWidth);
      if (width !== plot.width) plot.setSize({ width, height: HEIGHT });
    });
    watcher.observe(element);
    return () => {
      watcher.disconnect();
      plot.destroy();
      chart.current = null;
    };
    // Built again when colours or language change; data come below.
  }, [series, props.look, say.lang]);

  useEffect(() => {
    chart.current?.setData(stacked(series));
  }, [series, props.round]);

  const index = cursor !== null && cursor < series.points.length ? cursor : null;
  const point = index === null ? series.point : series.points[index];
  const at = index === null ? undefined : series.times[index];
  return (
    <div class="chart">
      <ul class="legend">
        {ORDER_CLASSES.map((name) => (
          <li>
            <i class={`swatch ${name}`} />
            <span>{say(`orders.${name}`)}</span>
            <b>{point ? rate(point[name], say.lang) : "–"}</b>
          </li>
        ))}
        <li class="at">{at === undefined ? "" : say("orders.time", { time: new Date(at * 1000).toLocaleTimeString() })}</li>
      </ul>
      <div ref={box} class="plot" role="img" aria-label={say("orders.title")} />
    </div>
  );
}
