/**
 * What an operator does to a SKU. The command's id is made when the dialog opens and kept until it closes, so sending
 * again after a lost answer has no second effect; and it names the revision that the operator saw.
 */
import { useRef, useState } from "preact/hooks";
import * as api from "../api/client";
import type { Stock, StockAnswer } from "../api/types";
import { visible } from "../format";
import { touched } from "../live/feed";
import { Note } from "../parts/basic";
import { Dialog } from "../parts/dialog";
import { ProblemNote } from "../parts/problem";
import { type Say, number } from "../parts/say";
import { AdjustFields, ConfigureFields, CountFields, PauseFields } from "./act_fields";

export type Act = "adjust" | "count" | "pause" | "configure";

/** A command that can be sent, without its id, reason and revision. */
export interface Ready {
  method: "PUT" | "POST" | "PATCH";
  path: string;
  body: Record<string, unknown>;
}

export interface FieldsProps {
  /** As it is now; null: there is no such SKU. */
  stock: Stock | null;
  say: Say;
  /** Called with what can be sent, or null while something is missing or wrong. */
  onReady: (ready: Ready | null) => void;
}

const REASON_BYTES_MAX = 256;

export function ActDialog(props: {
  act: Act;
  sku: string;
  stock: Stock | null;
  say: Say;
  onClose: () => void;
  onDone: () => void;
}) {
  const { act, sku, stock, say } = props;
  const [id] = useState(api.newId);
  // What the operator saw. Somebody else's change meanwhile is to be refused, not overwritten.
  const [seen, setSeen] = useState(stock?.revision ?? null);
  const [reason, setReason] = useState("");
  const [result, setResult] = useState<api.Result<StockAnswer> | null>(null);
  const [uncertain, setUncertain] = useState(false);
  const [sending, setSending] = useState(false);
  const ready = useRef<Ready | null>(null);
  const [isReady, setIsReady] = useState(false);

  const bytes = new TextEncoder().encode(reason).length;
  const reasonFits = reason.trim() !== "" && bytes <= REASON_BYTES_MAX;
  const done = result?.ok ? result.value : null;
  const problem = result && !result.ok && "problem" in result ? result.problem : null;
  const conflict = problem?.code === "revision_conflict" ? problem.lines?.[0] : undefined;
  const name = act === "pause" && stock?.settings.paused ? "resume" : act;

  const onReady = (value: Ready | null) => {
    ready.current = value;
    setIsReady(value !== null);
  };

  const send = async () => {
    const command = ready.current;
    if (!command || !reasonFits || sending || done) return;
    setSending(true);
    const answer = await api.command(command.method, sku, command.path, seen, { id, ...command.body, reason: reason.trim() });
    setSending(false);
    setResult(answer);
    // Once it may have been done it stays so, until an answer says what happened.
    setUncertain(api.isUncertain(answer));
    if (answer.ok) {
      touched();
      props.onDone();
    }
  };

  const Fields = { adjust: AdjustFields, count: CountFields, pause: PauseFields, configure: ConfigureFields }[act];
  return (
    <Dialog title={say(`act.${name}_title`, { sku: visible(sku) })} onClose={props.onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        <fieldset disabled={sending || done !== null}>
          <Fields stock={stock} say={say} onReady={onReady} />
          <label>
            {say("act.reason")}
            <input
              name="reason"
              value={reason}
              autocomplete="off"
              aria-describedby="reason-hint"
              onInput={(event) => setReason(event.currentTarget.value)}
            />
            <small id="reason-hint" class={bytes > REASON_BYTES_MAX ? "wrong" : ""}>
              {bytes > REASON_BYTES_MAX ? say("act.reason_error") : say("act.reason_hint")}
            </small>
          </label>
        </fieldset>
        {problem && !uncertain && <ProblemNote problem={problem} say={say} />}
        {problem && !uncertain && !conflict && <p class="hint">{say("act.refused")}</p>}
        {conflict && (
          <p class="note warn">
            {say("act.changed_meanwhile", {
              expected: seen === null ? say("sku.none") : number(say, seen),
              found: conflict.found == null ? say("sku.none") : number(say, conflict.found),
            })}{" "}
            <button type="button" onClick={() => (setSeen(conflict.found ?? null), setResult(null))}>
              {say("act.use_current")}
            </button>
          </p>
        )}
        {uncertain && (
          <Note tone="bad">
            {result && !result.ok && "unreachable" in result && say("act.unreachable", { detail: result.unreachable })}{" "}
            {say("act.uncertain")}
          </Note>
        )}
        {done && (
          <Note tone="good">
            {say(done.code === "replayed" ? "act.replayed" : "act.done", { revision: number(say, done.stock.revision) })}
          </Note>
        )}
        <p class="command-id">
          {say("act.command_id")} <code>{id}</code>
        </p>
        <div class="buttons">
          <button type="button" onClick={props.onClose}>
            {say(done ? "act.close" : "act.cancel")}
          </button>
          {!done && (
            <button type="submit" class="main" disabled={!isReady || !reasonFits || sending}>
              {sending ? say("act.sending") : say(uncertain ? "act.again" : "act.send")}
            </button>
          )}
        </div>
      </form>
    </Dialog>
  );
}
