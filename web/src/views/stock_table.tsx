/**
 * The SKUs that matter now. They change once a second, all at once in a sale, so only the rows in sight are in the page,
 * and of those only the ones whose figures changed are drawn again.
 */
import { Component } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { rate } from "../format";
import { type Live, serviceNow } from "../live/feed";
import { type Order, type Shown, shown, sort } from "../live/hot";
import { Panel, Share, SkuLink, StateBadge } from "../parts/basic";
import { type Say, number } from "../parts/say";

const ROWS_MAX = 200;
/** The height of a row, as the style sheet has it; and how many rows stand ready above and below those in sight. */
const ROW_PX = 29;
const SPARE = 4;
const ORDERS: readonly Order[] = ["active", "lowest", "name"];

interface RowProps {
  row: Shown;
  index: number;
  say: Say;
}

class StockRow extends Component<RowProps> {
  override shouldComponentUpdate(next: Readonly<RowProps>): boolean {
    const [a, b] = [this.props.row, next.row];
    return (
      this.props.say.lang !== next.say.lang ||
      this.props.index !== next.index ||
      a.sku !== b.sku ||
      a.available !== b.available ||
      a.reserved !== b.reserved ||
      a.sold !== b.sold ||
      a.onHand !== b.onHand ||
      a.state !== b.state ||
      rate(a.activity, next.say.lang) !== rate(b.activity, next.say.lang)
    );
  }

  override render({ row, index, say }: RowProps) {
    return (
      <tr class={row.state === "sold_out" ? "out" : ""} aria-rowindex={index + 2}>
        <td>
          <SkuLink sku={row.sku} />
        </td>
        <td class="num strong">{number(say, row.available)}</td>
        <td class="num">{number(say, row.reserved)}</td>
        <td class="num">{number(say, row.sold)}</td>
        <td class="num">{number(say, row.onHand)}</td>
        <td class="bar">
          <Share sold={row.sold} reserved={row.reserved} onHand={row.onHand} label={say("stock.share")} />
        </td>
        <td class={`num ${row.activity > 0 ? "" : "faint"}`}>{rate(row.activity, say.lang)}</td>
        <td>
          <StateBadge state={row.state} say={say} />
        </td>
      </tr>
    );
  }
}

export function StockTable(props: {
  state: Live;
  say: Say;
  order: Order;
  setOrder: (order: Order) => void;
  filter: string;
  setFilter: (filter: string) => void;
}) {
  const { state, say, order, filter } = props;
  const now = serviceNow(state);
  const wanted = filter.toLowerCase();
  const rows: Shown[] = [];
  for (const row of state.hot.rows.values()) {
    if (wanted === "" || row.sku.toLowerCase().includes(wanted)) rows.push(shown(row, now));
  }
  sort(rows, order);
  const known = state.hot.rows.size;
  const top = rows.slice(0, ROWS_MAX);
  return (
    <Panel
      title={say("stock.title")}
      class="stock"
      aside={
        <div class="tools">
          <small>{say("stock.shown", { shown: number(say, top.length), known: `${number(say, known)}${state.hasMore ? "+" : ""}` })}</small>
          <input
            type="search"
            value={filter}
            placeholder={say("stock.filter")}
            aria-label={say("stock.filter")}
            onInput={(event) => props.setFilter(event.currentTarget.value)}
          />
          <div class="choice" role="group" aria-label={say("stock.sort")}>
            {ORDERS.map((one) => (
              <button type="button" aria-pressed={one === order} onClick={() => props.setOrder(one)}>
                {say(`stock.sort.${one}`)}
              </button>
            ))}
          </div>
        </div>
      }
    >
      {top.length === 0 ? (
        <p class="empty">{known === 0 ? say("stock.empty") : say("stock.no_match")}</p>
      ) : (
        <Rows rows={top} say={say} />
      )}
      {state.hasMore && <p class="hint">{say("stock.more")}</p>}
    </Panel>
  );
}

const gap = (rows: number) =>
  rows > 0 ? (
    <tr class="gap" aria-hidden="true">
      <td colSpan={8} style={{ height: `${rows * ROW_PX}px` }} />
    </tr>
  ) : null;

function Rows({ rows, say }: { rows: Shown[]; say: Say }) {
  const box = useRef<HTMLDivElement>(null);
  const [sight, setSight] = useState({ top: 0, height: 800 });
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const look = () => setSight({ top: element.scrollTop, height: element.clientHeight });
    const watcher = new ResizeObserver(look);
    watcher.observe(element);
    element.addEventListener("scroll", look, { passive: true });
    return () => {
      watcher.disconnect();
      element.removeEventListener("scroll", look);
    };
  }, []);
  const inSight = Math.ceil(sight.height / ROW_PX) + 2 * SPARE;
  // In steps, so that scrolling by a pixel draws nothing.
  const wanted = Math.floor(sight.top / ROW_PX / SPARE) * SPARE - SPARE;
  const first = Math.max(0, Math.min(wanted, rows.length - inSight));
  const last = Math.min(rows.length, first + inSight + SPARE);
  return (
    <div class="scroll" tabIndex={-1} ref={box}>
      <table class="rows" aria-rowcount={rows.length + 1}>
        <thead>
          <tr>
            <th>{say("stock.sku")}</th>
            <th class="num">{say("stock.available")}</th>
            <th class="num">{say("stock.reserved")}</th>
            <th class="num">{say("stock.sold")}</th>
            <th class="num">{say("stock.on_hand")}</th>
            <th class="bar">
              <span class="key sold" /> <span class="key held" /> <span class="key rest" /> {say("stock.share")}
            </th>
            <th class="num">{say("stock.activity")}</th>
            <th>{say("stock.state")}</th>
          </tr>
        </thead>
        <tbody>
          {gap(first)}
          {rows.slice(first, last).map((row, index) => (
            <StockRow key={row.sku} row={row} index={first + index} say={say} />
          ))}
          {gap(rows.length - last)}
        </tbody>
      </table>
    </div>
  );
}
