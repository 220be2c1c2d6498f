/** The fields of each command, with what they would change as of now. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Location, Stock } from "../api/types";
import { FIGURE_MAX, figure, fromLocalInput, readDelta, readFigure, toLocalInput, visible } from "../format";
import { Id } from "../parts/basic";
import { type Say, number } from "../parts/say";
import type { FieldsProps, Ready } from "./act";

function Field(props: { label: string; hint?: string | undefined; wrong?: boolean; children: ComponentChildren }) {
  return (
    <label>
      {props.label}
      {props.children}
      {props.hint && <small class={props.wrong ? "wrong" : ""}>{props.hint}</small>}
    </label>
  );
}

/** Tells the dialog what can be sent whenever a field or the SKU changed. */
function useReady(onReady: (ready: Ready | null) => void, ready: Ready | null): void {
  useEffect(() => onReady(ready), [JSON.stringify(ready)]);
}

function LocationField(props: { stock: Stock | null; value: string; onChange: (value: string) => void; say: Say }) {
  const known = props.stock?.locations ?? [];
  return (
    <Field label={props.say("act.location")}>
      <input
        name="location"
        list="known-locations"
        value={props.value}
        autocomplete="off"
        onInput={(event) => props.onChange(event.currentTarget.value)}
      />
      <datalist id="known-locations">
        {known.map((at) => (
          <option value={at.location} />
        ))}
      </datalist>
    </Field>
  );
}

const firstLocation = (stock: Stock | null): string => stock?.locations[0]?.location ?? "default";
const at = (stock: Stock | null, location: string): Location | undefined =>
  stock?.locations.find((one) => one.location === location);

function Preview(props: { location: string; before: number; after: bigint; say: Say }) {
  const { say } = props;
  const fits = props.after >= 0n && props.after <= FIGURE_MAX;
  return (
    <p class={`preview ${fits ? "" : "wrong"}`}>
      {say("act.preview", {
        location: visible(props.location),
        before: number(say, props.before),
        after: figure(props.after, say.lang),
      })}{" "}
      <small>{say("act.preview_now")}</small>
    </p>
  );
}

export function AdjustFields({ stock, say, onReady }: FieldsProps) {
  const [location, setLocation] = useState(firstLocation(stock));
  const [text, setText] = useState("");
  const delta = readDelta(text);
  const here = at(stock, location);
  useReady(
    onReady,
    delta === null || location === "" ? null : { method: "POST", path: "/adjustments", body: { location, delta } },
  );
  const wrong = text !== "" && delta === null;
  return (
    <>
      <LocationField stock={stock} value={location} onChange={setLocation} say={say} />
      <Field label={say("act.delta")} hint={wrong ? say("act.delta_error") : say("act.delta_hint")} wrong={wrong}>
        <input
          name="delta"
          inputMode="text"
          class="figure-input"
          autofocus
          value={text}
          autocomplete="off"
          placeholder="+100"
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </Field>
      {delta !== null && here && (
        <Preview location={location} before={here.on_hand} after={BigInt(here.on_hand) + BigInt(delta)} say={say} />
      )}
    </>
  );
}

export function CountFields({ stock, say, onReady }: FieldsProps) {
  const [location, setLocation] = useState(firstLocation(stock));
  const [text, setText] = useState("");
  const here = at(stock, location);
  // As sold when the dialog was opened or the location chosen: that is when the operator has the count in hand.
  const [seenText, setSeenText] = useState(here ? String(here.sold) : "");
  const onHand = readFigure(text);
  const seen = readFigure(seenText);
  const isReady = onHand !== null && location !== "" && (!here || seen !== null);
  const body = here ? { location, on_hand: onHand, sold_seen: seen } : { location, on_hand: onHand };
  useReady(onReady, isReady ? { method: "PUT", path: "", body } : null);
  const wrong = text !== "" && onHand === null;
  const seenWrong = seen === null || (here !== undefined && seen > here.sold);
  return (
    <>
      <LocationField
        stock={stock}
        value={location}
        say={say}
        onChange={(value) => {
          setLocation(value);
          const there = at(stock, value);
          if (there) setSeenText(String(there.sold));
        }}
      />
      <Field label={say("act.counted")} hint={wrong ? say("act.figure_error") : undefined} wrong={wrong}>
        <input
          name="on_hand"
          inputMode="numeric"
          class="figure-input"
          autofocus
          value={text}
          autocomplete="off"
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </Field>
      {here && (
        <Field label={say("act.sold_seen")} hint={say("act.sold_seen_hint")}>
          <input
            name="sold_seen"
            inputMode="numeric"
            class={`figure-input ${seenWrong ? "wrong" : ""}`}
            value={seenText}
            autocomplete="off"
            onInput={(event) => setSeenText(event.currentTarget.value)}
          />
        </Field>
      )}
      {here && onHand !== null && seen !== null && (
        <Preview
          location={location}
          before={here.on_hand}
          after={BigInt(onHand) - (BigInt(here.sold) - BigInt(seen))}
          say={say}
        />
      )}
    </>
  );
}

export function PauseFields({ stock, say, onReady }: FieldsProps) {
  // What was shown when the dialog opened: a change meanwhile must not turn a pause into the opposite.
  const [paused] = useState(stock?.settings.paused ?? false);
  useReady(onReady, { method: "PATCH", path: "", body: { paused: !paused } });
  return <p>{say(paused ? "act.resume_about" : "act.pause_about")}</p>;
}

export function ConfigureFields({ stock, say, onReady }: FieldsProps) {
  const [before] = useState(stock);
  const settings = before?.settings;
  const floors = before?.locations ?? [];
  const [limit, setLimit] = useState(settings?.limit_per_owner == null ? "" : String(settings.limit_per_owner));
  const [opens, setOpens] = useState(toLocalInput(settings?.opens_at_ms ?? null));
  const [closes, setCloses] = useState(toLocalInput(settings?.closes_at_ms ?? null));
  const [split, setSplit] = useState(settings?.split ?? true);
  const [stays, setStays] = useState<Record<string, string>>(
    Object.fromEntries(floors.map((one) => [one.location, String(one.safety_stock)])),
  );

  const limitValue = limit.trim() === "" ? null : readFigure(limit);
  const limitWrong = limit.trim() !== "" && (limitValue === null || limitValue === 0);
  const floorWrong = floors.some((one) => readFigure(stays[one.location] ?? "") === null);
  // Only what was changed is sent: what others changed meanwhile stays. Times are compared as typed, for the field has
  // no milliseconds.
  const body: Record<string, unknown> = {};
  if (limitValue !== (settings?.limit_per_owner ?? null)) body["limit_per_owner"] = limitValue;
  if (opens !== toLocalInput(settings?.opens_at_ms ?? null)) body["opens_at_ms"] = fromLocalInput(opens);
  if (closes !== toLocalInput(settings?.closes_at_ms ?? null)) body["closes_at_ms"] = fromLocalInput(closes);
  if (split !== settings?.split) body["split"] = split;
  const moved = floors.filter((one) => readFigure(stays[one.location] ?? "") !== one.safety_stock);
  if (moved.length > 0) {
    body["safety_stock"] = moved.map((one) => ({
      location: one.location,
      safety_stock: readFigure(stays[one.location] ?? ""),
    }));
  }
  const isChanged = Object.keys(body).length > 0;
  useReady(onReady, limitWrong || floorWrong || !isChanged ? null : { method: "PATCH", path: "", body });
  return (
    <>
      <Field label={say("sku.limit")} hint={say(limitWrong ? "act.quantity_error" : "act.limit_hint")} wrong={limitWrong}>
        <input
          name="limit_per_owner"
          inputMode="numeric"
          class="figure-input"
          autofocus
          value={limit}
          autocomplete="off"
          onInput={(event) => setLimit(event.currentTarget.value)}
        />
      </Field>
      <div class="pair">
        <Field label={say("sku.opens")} hint={say("act.time_hint")}>
          <input type="datetime-local" step="1" value={opens} onInput={(event) => setOpens(event.currentTarget.value)} />
        </Field>
        <Field label={say("sku.closes")} hint={say("act.time_hint")}>
          <input type="datetime-local" step="1" value={closes} onInput={(event) => setCloses(event.currentTarget.value)} />
        </Field>
      </div>
      {floors.map((one) => (
        <label key={one.location}>
          <span>
            {say("stock.safety_stock")} <Id id={one.location} />
          </span>
          <input
            inputMode="numeric"
            class="figure-input"
            value={stays[one.location] ?? ""}
            autocomplete="off"
            onInput={(event) => setStays({ ...stays, [one.location]: event.currentTarget.value })}
          />
        </label>
      ))}
      <label class="check">
        <input type="checkbox" checked={split} onChange={(event) => setSplit(event.currentTarget.checked)} />
        {say("sku.split")}
      </label>
      {!isChanged && <p class="hint">{say("act.nothing")}</p>}
    </>
  );
}
