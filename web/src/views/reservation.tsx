/** One reservation and everything that happened to it. */
import * as api from "../api/client";
import type { Reservation } from "../api/types";
import { moment } from "../format";
import { useAsked } from "../live/ask";
import { type Live, may, serviceNow } from "../live/feed";
import { Id, Note, Panel, SkuLink, StatusBadge } from "../parts/basic";
import { type Say, number } from "../parts/say";
import { href } from "../route";
import { Failure } from "./failure";
import { Movements } from "./movements";
import { ends } from "./sku";

export function ReservationView({ id, state, say }: { id: string; state: Live; say: Say }) {
  const { result } = useAsked(() => api.reservation(id), id, 1_000);
  const reservation = result?.ok ? result.value.reservation : null;
  const isUnknown = result !== null && !result.ok && "problem" in result && result.problem.code === "not_found";
  return (
    <div class="one">
      <div class="title">
        <p class="over">{say("reservation.title")}</p>
        <h1>
          <Id id={id} />
        </h1>
        {reservation && (
          <p class="badges">
            <StatusBadge status={reservation.status} say={say} />
          </p>
        )}
      </div>
      {isUnknown ? <Note>{say("reservation.unknown")}</Note> : <Failure result={result} say={say} />}
      {reservation?.sealed && <Note>{say("reservation.sealed")}</Note>}
      {reservation && <Facts reservation={reservation} state={state} say={say} />}
      {reservation && reservation.lines.length > 0 && <LinesPanel reservation={reservation} say={say} />}
      {reservation && may(state, "read") && (
        <Movements title={say("reservation.history")} by={{ reservation: id }} say={say} turn={0} />
      )}
    </div>
  );
}

function Facts({ reservation, state, say }: { reservation: Reservation; state: Live; say: Say }) {
  const time = (ms: number) => moment(ms, Date.now(), say.lang);
  const now = serviceNow(state);
  return (
    <Panel title={say("reservation.title")} class="facts-panel">
      <dl class="pairs">
        <div>
          <dt>{say("reservations.owner")}</dt>
          <dd>
            {reservation.owner === null ? (
              "–"
            ) : (
              <a href={href({ page: "reservations", owner: reservation.owner })}>
                <Id id={reservation.owner} />
              </a>
            )}
          </dd>
        </div>
        <div>
          <dt>{say("reservation.mode")}</dt>
          <dd>{say(`reservation.mode.${reservation.mode}`)}</dd>
        </div>
        <div>
          <dt>{say("reservation.granted")}</dt>
          <dd>{time(reservation.granted_at_ms)}</dd>
        </div>
        <div>
          <dt>{say("reservation.ends")}</dt>
          <dd>
            {time(reservation.expires_at_ms)}{" "}
            {reservation.status === "pending" && <span class="faint">{ends(reservation.expires_at_ms, now, say)}</span>}
          </dd>
        </div>
      </dl>
    </Panel>
  );
}

function LinesPanel({ reservation, say }: { reservation: Reservation; say: Say }) {
  return (
    <Panel title={say("reservation.lines")}>
      <table>
        <thead>
          <tr>
            <th>{say("stock.sku")}</th>
            <th>{say("sku.location")}</th>
            <th class="num">{say("reservation.quantity")}</th>
            <th class="num">{say("reservation.confirmed")}</th>
            <th class="num">{say("reservation.returned")}</th>
          </tr>
        </thead>
        <tbody>
          {reservation.lines.flatMap((line) =>
            line.allocations.map((from, index) => (
              <tr>
                <td>{index === 0 && <SkuLink sku={line.sku} />}</td>
                <td>
                  <Id id={from.location} />
                </td>
                <td class="num strong">{number(say, from.quantity)}</td>
                <td class="num">{number(say, from.confirmed)}</td>
                <td class="num">{number(say, from.returned)}</td>
              </tr>
            )),
          )}
        </tbody>
      </table>
    </Panel>
  );
}
