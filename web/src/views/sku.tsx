/** One SKU: where its units are, what ends next, who changed what; and what may be done to it. */
import { useEffect, useState } from "preact/hooks";
import * as api from "../api/client";
import type { Settings, Stock } from "../api/types";
import { moment, span, sum, visible } from "../format";
import { useAsked } from "../live/ask";
import { type Live, may, serviceNow } from "../live/feed";
import { stateOf } from "../live/hot";
import { Id, Note, Panel, ReservationLink, Share, StateBadge } from "../parts/basic";
import { type Say, number } from "../parts/say";
import { href } from "../route";
import { type Act, ActDialog } from "./act";
import { Failure } from "./failure";
import { Movements } from "./movements";

const ENDING_SHOWN = 12;
const ENDING_READ = 1_000;

export function SkuView({ sku, state, say, singleKeys }: { sku: string; state: Live; say: Say; singleKeys: boolean }) {
  const { result, again } = useAsked(() => api.stock(sku), sku, 1_000);
  const [act, setAct] = useState<Act | null>(null);
  const [turn, setTurn] = useState(0);
  const stock = result?.ok ? result.value.stock : null;
  const isUnknown = result !== null && !result.ok && "problem" in result && result.problem.code === "unknown_sku";
  const mayChange = may(state, "stock");

  useEffect(() => {
    const acts: Record<string, Act> = { a: "adjust", c: "count", p: "pause", s: "configure" };
    const press = (event: KeyboardEvent) => {
      const chosen = acts[event.key];
      if (!singleKeys || !chosen || !stock || !mayChange || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target instanceof Element && event.target.closest("input, textarea, select, dialog")) return;
      event.preventDefault();
      setAct(chosen);
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, [stock === null, mayChange, singleKeys]);

  const button = (name: Act, label: string, hint: string) => (
    <button type="button" disabled={!mayChange} title={mayChange ? hint : say("sku.no_scope")} onClick={() => setAct(name)}>
      {label}
    </button>
  );
  return (
    <div class="one">
      <div class="title">
        <p class="over">{say("sku.title")}</p>
        <h1>
          <Id id={sku} />
        </h1>
        {stock && <Badges stock={stock} state={state} say={say} />}
        {stock && (
          <div class="actions">
            {button("adjust", say("act.adjust"), "a")}
            {button("count", say("act.count"), "c")}
            {button("pause", say(stock.settings.paused ? "act.resume" : "act.pause"), "p")}
            {button("configure", say("act.configure"), "s")}
          </div>
        )}
      </div>
      {stock && state.overview && !mayChange && <Note>{say("sku.no_scope")}</Note>}
      {isUnknown ? (
        <Panel title={say("sku.title")}>
          <p class="empty">
            {say("sku.unknown")}{" "}
            {mayChange && (
              <button type="button" onClick={() => setAct("count")}>
                {say("sku.create")}
              </button>
            )}
          </p>
        </Panel>
      ) : (
        <>
          <Failure result={result} say={say} />
          {stock && <Locations stock={stock} say={say} />}
          {stock && <SettingsPanel settings={stock.settings} say={say} />}
          {stock && may(state, "read") && (
            <>
              <Ending sku={sku} state={state} say={say} />
              <Movements title={say("sku.movements")} by={{ sku }} say={say} turn={turn} />
            </>
          )}
          {stock && state.overview && !may(state, "read") && <Note>{say("sku.no_read")}</Note>}
        </>
      )}
      {act && (stock || isUnknown) && (
        <ActDialog
          act={act}
          sku={sku}
          stock={stock}
          say={say}
          onClose={() => setAct(null)}
          onDone={() => {
            again();
            setTurn((old) => old + 1);
          }}
        />
      )}
    </div>
  );
}

function Badges({ stock, state, say }: { stock: Stock; state: Live; say: Say }) {
  const total = (name: "available" | "sold" | "reserved") => sum(stock.locations.map((at) => at[name]));
  const badge = stateOf(total("available"), total("sold"), total("reserved"), stock.settings, serviceNow(state));
  return (
    <p class="badges">
      <StateBadge state={badge} say={say} />
      <span class="faint">{say("sku.revision", { revision: number(say, stock.revision) })}</span>
    </p>
  );
}

const COLUMNS = ["available", "reserved", "sold", "on_hand", "safety_stock"] as const;

function Locations({ stock, say }: { stock: Stock; say: Say }) {
  const total = (name: (typeof COLUMNS)[number]) => sum(stock.locations.map((at) => at[name]));
  return (
    <Panel title={say("sku.locations")} class="locations">
      <table>
        <thead>
          <tr>
            <th>{say("sku.location")}</th>
            {COLUMNS.map((name) => (
              <th class="num">{say(`stock.${name}`)}</th>
            ))}
            <th class="bar">
              <span class="key sold" /> <span class="key held" /> <span class="key rest" /> {say("stock.share")}
            </th>
          </tr>
        </thead>
        <tbody>
          {stock.locations.map((at) => (
            <tr key={at.location}>
              <td>
                <Id id={at.location} />
              </td>
              {COLUMNS.map((name) => (
                <td class={`num ${name === "available" ? "strong" : ""}`} data-figure={name}>
                  {number(say, at[name])}
                </td>
              ))}
              <td class="bar">
                <Share sold={BigInt(at.sold)} reserved={BigInt(at.reserved)} onHand={BigInt(at.on_hand)} label={say("stock.share")} />
              </td>
            </tr>
          ))}
        </tbody>
        {stock.locations.length > 1 && (
          <tfoot>
            <tr>
              <th>{say("sku.all")}</th>
              {COLUMNS.map((name) => (
                <td class={`num ${name === "available" ? "strong" : ""}`}>{number(say, total(name))}</td>
              ))}
              <td class="bar">
                <Share sold={total("sold")} reserved={total("reserved")} onHand={total("on_hand")} label={say("stock.share")} />
              </td>
            </tr>
          </tfoot>
        )}
      </table>
    </Panel>
  );
}

function SettingsPanel({ settings, say }: { settings: Settings; say: Say }) {
  const time = (ms: number | null) => (ms === null ? say("sku.none") : moment(ms, Date.now(), say.lang));
  const rows: [string, string][] = [
    [say("sku.limit"), settings.limit_per_owner === null ? say("sku.none") : number(say, settings.limit_per_owner)],
    [say("sku.opens"), time(settings.opens_at_ms)],
    [say("sku.closes"), time(settings.closes_at_ms)],
    [say("sku.split"), say(settings.split ? "sku.yes" : "sku.no")],
  ];
  if (settings.order.length > 0) rows.push([say("sku.order"), settings.order.map(visible).join(" → ")]);
  if (settings.group !== null) rows.push([say("sku.group"), visible(settings.group)]);
  return (
    <Panel title={say("sku.settings")} class="settings">
      <dl class="pairs">
        {rows.map(([name, value]) => (
          <div>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </Panel>
  );
}

function Ending({ sku, state, say }: { sku: string; state: Live; say: Say }) {
  const ask = () => api.reservations({ sku, status: "pending", limit: ENDING_READ });
  const { result } = useAsked(ask, sku, 3_000);
  const all = result?.ok ? result.value.reservations : [];
  const soonest = [...all].sort((a, b) => a.expires_at_ms - b.expires_at_ms).slice(0, ENDING_SHOWN);
  const now = serviceNow(state);
  const units = (id: (typeof all)[number]) => sum(id.lines.filter((line) => line.sku === sku).map((line) => line.quantity));
  return (
    <Panel
      title={say("sku.ending")}
      class="ending"
      aside={
        <div class="tools">
          {result?.ok && result.value.next_before !== null && (
            <small>{say("sku.ending_of", { count: number(say, ENDING_READ) })}</small>
          )}
          <a href={href({ page: "reservations", sku })}>{say("sku.all_reservations")}</a>
        </div>
      }
    >
      <Failure result={result} say={say} />
      {result?.ok && soonest.length === 0 && <p class="empty">{say("sku.ending_none")}</p>}
      {soonest.length > 0 && (
        <table class="rows">
          <thead>
            <tr>
              <th>{say("reservation.ends")}</th>
              <th class="num">{say("reservation.quantity")}</th>
              <th>{say("reservation.id")}</th>
              <th>{say("reservations.owner")}</th>
            </tr>
          </thead>
          <tbody>
            {soonest.map((one) => (
              <tr key={one.id}>
                <td class="time">{ends(one.expires_at_ms, now, say)}</td>
                <td class="num">{number(say, units(one))}</td>
                <td>
                  <ReservationLink id={one.id} />
                </td>
                <td>{one.owner === null ? "–" : <Id id={one.owner} />}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Panel>
  );
}

export function ends(at: number, now: number, say: Say): string {
  return at > now ? say("reservation.ends_in", { span: span(at - now, say.lang) }) : say("reservation.ended", { span: span(now - at, say.lang) });
}
