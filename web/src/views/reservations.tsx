/** Reservations by owner, SKU and status; and the door to one by its id. */
import { useState } from "preact/hooks";
import * as api from "../api/client";
import type { Reservation } from "../api/types";
import { moment } from "../format";
import { useAsked } from "../live/ask";
import { type Live, serviceNow } from "../live/feed";
import { Id, Panel, ReservationLink, SkuLink, StatusBadge } from "../parts/basic";
import { type Say, number } from "../parts/say";
import { href, type Route } from "../route";
import { Failure } from "./failure";
import { ends } from "./sku";

const LIMIT = 100;
const STATUSES = ["pending", "confirmed", "cancelled", "expired", "lost"] as const;

type Query = Extract<Route, { page: "reservations" }>;

export function ReservationsView({ route, state, say }: { route: Query; state: Live; say: Say }) {
  const [before, setBefore] = useState<string | null>(null);
  const [id, setId] = useState("");
  const [owner, setOwner] = useState(route.owner ?? "");
  const [sku, setSku] = useState(route.sku ?? "");
  const [status, setStatus] = useState(route.status ?? "");
  const { result } = useAsked(
    () => api.reservations({ owner: route.owner, sku: route.sku, status: route.status, before, limit: LIMIT }),
    JSON.stringify([route, before]),
    before === null ? 3_000 : 60_000,
  );
  const page = result?.ok ? result.value : null;
  const now = serviceNow(state);
  return (
    <div class="one">
      <div class="title">
        <h1>{say("reservations.title")}</h1>
      </div>
      <Panel title={say("reservations.find")} class="find">
        <form
          class="inline"
          onSubmit={(event) => {
            event.preventDefault();
            if (id !== "") location.hash = href({ page: "reservation", id });
          }}
        >
          <label>
            {say("reservation.id")}
            <input id="reservation-id" class="wide" value={id} onInput={(event) => setId(event.currentTarget.value)} />
          </label>
          <button type="submit">{say("reservations.open")}</button>
        </form>
        <form
          class="inline"
          onSubmit={(event) => {
            event.preventDefault();
            setBefore(null);
            location.hash = href({ page: "reservations", owner, sku, status });
          }}
        >
          <label>
            {say("reservations.owner")}
            <input value={owner} onInput={(event) => setOwner(event.currentTarget.value)} />
          </label>
          <label>
            {say("reservations.sku")}
            <input value={sku} onInput={(event) => setSku(event.currentTarget.value)} />
          </label>
          <label>
            {say("reservations.status")}
            <select value={status} onChange={(event) => setStatus(event.currentTarget.value)}>
              <option value="">{say("reservations.any")}</option>
              {STATUSES.map((one) => (
                <option value={one}>{say(`reservation.status.${one}`)}</option>
              ))}
            </select>
          </label>
          <button type="submit">{say("reservations.list")}</button>
        </form>
      </Panel>
      <Panel
        title={say("reservations.title")}
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
        {page && page.reservations.length === 0 && <p class="empty">{say("reservations.none")}</p>}
        {page && page.reservations.length > 0 && (
          <div class="scroll" tabIndex={-1}>
            <table class="rows">
              <thead>
                <tr>
                  <th>{say("reservation.granted")}</th>
                  <th>{say("reservation.id")}</th>
                  <th>{say("reservations.owner")}</th>
                  <th>{say("reservations.status")}</th>
                  <th>{say("reservation.ends")}</th>
                  <th>{say("reservation.lines")}</th>
                </tr>
              </thead>
              <tbody>
                {page.reservations.map((one) => (
                  <tr key={one.id}>
                    <td class="time">{moment(one.granted_at_ms, Date.now(), say.lang)}</td>
                    <td>
                      <ReservationLink id={one.id} />
                    </td>
                    <td>{one.owner === null ? "–" : <Id id={one.owner} />}</td>
                    <td>
                      <StatusBadge status={one.status} say={say} />
                    </td>
                    <td class="time">{one.status === "pending" ? ends(one.expires_at_ms, now, say) : "–"}</td>
                    <td>
                      <Lines reservation={one} say={say} />
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </Panel>
    </div>
  );
}

const LINES_SHOWN = 3;

function Lines({ reservation, say }: { reservation: Reservation; say: Say }) {
  const { lines } = reservation;
  return (
    <>
      {lines.slice(0, LINES_SHOWN).map((line) => (
        <span class="pick">
          {number(say, line.quantity)} × <SkuLink sku={line.sku} />
        </span>
      ))}
      {lines.length > LINES_SHOWN && <span class="faint">+{lines.length - LINES_SHOWN}</span>}
    </>
  );
}
