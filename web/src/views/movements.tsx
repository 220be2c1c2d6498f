/** Movements, newest first, a page at a time. */
import { useState } from "preact/hooks";
import * as api from "../api/client";
import type { Movement } from "../api/types";
import { moment, signed, visible } from "../format";
import { kindText } from "../i18n/codes";
import { useAsked } from "../live/ask";
import { Id, Panel, ReservationLink, SkuLink } from "../parts/basic";
import { type Say, number } from "../parts/say";
import { Failure } from "./failure";

const LIMIT = 50;

export function Movements(props: { title: string; by: { sku?: string; reservation?: string }; say: Say; turn: number }) {
  const { by, say } = props;
  const [before, setBefore] = useState<number | null>(null);
  const what = JSON.stringify([by, before, props.turn]);
  const { result } = useAsked(() => api.movements({ ...by, before, limit: LIMIT }), what, before === null ? 2_000 : 60_000);
  const page = result?.ok ? result.value : null;
  return (
    <Panel
      title={props.title}
      class="movements"
      aside={
        <div class="tools">
          {before !== null && (
            <button type="button" onClick={() => setBefore(null)}>
              {say("movement.newest")}
            </button>
          )}
          {page?.next_before != null && (
            <button type="button" onClick={() => setBefore(page.next_before)}>
              {say("movement.older")}
            </button>
          )}
        </div>
      }
    >
      <Failure result={result} say={say} />
      {page && page.movements.length === 0 && <p class="empty">{say("movement.none")}</p>}
      {page && page.movements.length > 0 && (
        <div class="scroll" tabIndex={-1}>
          <table class="rows">
            <thead>
              <tr>
                <th>{say("movement.time")}</th>
                <th>{say("movement.kind")}</th>
                {by.sku === undefined ? <th>{say("stock.sku")}</th> : <th>{say("movement.reservation")}</th>}
                <th>{say("sku.location")}</th>
                <th class="num">{say("movement.on_hand")}</th>
                <th class="num">{say("movement.reserved")}</th>
                <th class="num">{say("movement.sold")}</th>
                <th class="num">{say("movement.after")}</th>
                <th class="num">{say("movement.available_after")}</th>
                <th>{say("movement.by")}</th>
                <th>{say("movement.reason")}</th>
              </tr>
            </thead>
            <tbody>
              {page.movements.map((movement) => (
                <MovementRow key={movement.number} movement={movement} say={say} bySku={by.sku !== undefined} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Panel>
  );
}

function MovementRow({ movement, say, bySku }: { movement: Movement; say: Say; bySku: boolean }) {
  const cause =
    movement.reservation !== null ? (
      <ReservationLink id={movement.reservation} />
    ) : movement.command !== null ? (
      <Id id={movement.command} />
    ) : (
      "–"
    );
  const delta = (value: number) => <td class={`num ${value === 0 ? "faint" : ""}`}>{signed(value, say.lang)}</td>;
  return (
    <tr>
      <td class="time">{moment(movement.at_ms, Date.now(), say.lang)}</td>
      <td>{kindText(movement.kind, say.lang)}</td>
      <td>{bySku ? cause : movement.sku === null ? "–" : <SkuLink sku={movement.sku} />}</td>
      <td>{movement.location === null ? "–" : <Id id={movement.location} />}</td>
      {delta(movement.on_hand)}
      {delta(movement.reserved)}
      {delta(movement.sold)}
      <td class="num">{movement.after ? number(say, movement.after.on_hand) : "–"}</td>
      <td class="num">{movement.after ? number(say, movement.after.available) : "–"}</td>
      <td>
        <Id id={movement.actor} />
      </td>
      <td class="reason">{visible(movement.reason)}</td>
    </tr>
  );
}
