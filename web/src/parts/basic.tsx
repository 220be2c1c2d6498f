/** Small parts that every view uses. */
import type { ComponentChildren } from "preact";
import type { Status } from "../api/types";
import { visible } from "../format";
import type { State } from "../live/hot";
import { href } from "../route";
import type { Say } from "./say";

/** A part of a page with its heading. */
export function Panel(props: { title: string; aside?: ComponentChildren; class?: string; children: ComponentChildren }) {
  return (
    <section class={`panel ${props.class ?? ""}`}>
      <header>
        <h2>{props.title}</h2>
        {props.aside}
      </header>
      {props.children}
    </section>
  );
}

/** An id, as it is: nothing in it is taken for markup, and marks that hide or reorder text are shown. */
export function Id({ id }: { id: string }) {
  return (
    <bdi class="id" title={id}>
      {visible(id)}
    </bdi>
  );
}

export const SkuLink = ({ sku }: { sku: string }) => (
  <a class="name" href={href({ page: "sku", sku })}>
    <Id id={sku} />
  </a>
);

export const ReservationLink = ({ id }: { id: string }) => (
  <a class="name" href={href({ page: "reservation", id })}>
    <Id id={id} />
  </a>
);

const TONES: Record<State | Status, string> = {
  selling: "good",
  low: "warn",
  sold_out: "bad",
  paused: "warn",
  not_open: "calm",
  closed: "calm",
  pending: "warn",
  confirmed: "good",
  cancelled: "calm",
  expired: "calm",
  lost: "bad",
};

export const StateBadge = ({ state, say }: { state: State; say: Say }) => (
  <span class={`badge ${TONES[state]}`}>{say(`state.${state}`)}</span>
);

export const StatusBadge = ({ status, say }: { status: Status; say: Say }) => (
  <span class={`badge ${TONES[status]}`}>{say(`reservation.status.${status}`)}</span>
);

/**
 * Sold, reserved and available as parts of all units. Widths are shares, so that figures of any size fit; they colour a
 * background, so that a change is painted and nothing is laid out again.
 */
export function Share(props: { sold: bigint; reserved: bigint; onHand: bigint; label: string }) {
  const { sold, reserved, onHand } = props;
  const total = sold + onHand;
  const part = (units: bigint) => `${total === 0n ? 0 : Number((units * 1000n) / total) / 10}%`;
  const parts = { "--sold": part(sold), "--held": part(sold + reserved) };
  return <div class="share" role="img" aria-label={props.label} style={parts} />;
}

export const Note = ({ children, tone }: { children: ComponentChildren; tone?: "bad" | "warn" | "good" }) => (
  <p class={`note ${tone ?? ""}`} role={tone === "bad" ? "alert" : undefined}>
    {children}
  </p>
);
