/** The key, and the list of shortcuts. */
import { useState } from "preact/hooks";
import { key } from "../api/client";
import type { Text } from "../i18n";
import { type Live, useKey } from "../live/feed";
import { choose, prefs } from "../live/prefs";
import { useStore } from "../live/store";
import { Note } from "../parts/basic";
import { Dialog } from "../parts/dialog";
import type { Say } from "../parts/say";

export function KeyDialog({ state, say, onClose }: { state: Live; say: Say; onClose: () => void }) {
  const [text, setText] = useState("");
  const held = key.get() !== null;
  return (
    <Dialog title={say("key.title")} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (text.trim() === "") return;
          useKey(text.trim());
          onClose();
        }}
      >
        {state.refusal && held && <Note tone="bad">{say("banner.bad_key", { detail: state.refusal.detail })}</Note>}
        {state.overview && (
          <p>
            {say("tenant", { tenant: state.overview.tenant })} · {say("key.may", { scopes: state.overview.scopes.join(", ") })}
          </p>
        )}
        {state.overview && !held && <p class="hint">{say("key.none_needed")}</p>}
        <label>
          {say("key.label")}
          <input
            type="password"
            name="key"
            autocomplete="off"
            spellcheck={false}
            autofocus
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
          <small>{say("key.about")}</small>
        </label>
        <div class="buttons">
          {held && (
            <button type="button" onClick={() => (useKey(null), onClose())}>
              {say("key.forget")}
            </button>
          )}
          <button type="button" onClick={onClose}>
            {say("act.cancel")}
          </button>
          <button type="submit" class="main" disabled={text.trim() === ""}>
            {say("key.use")}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

const KEYS: readonly [string, Text][] = [
  ["/", "help.search"],
  ["g o", "help.overview"],
  ["g r", "help.reservations"],
  ["j  k", "help.rows"],
  ["Enter", "help.open"],
  ["a", "help.adjust"],
  ["c", "help.count"],
  ["p", "help.pause"],
  ["s", "help.configure"],
  ["t", "help.theme"],
  ["l", "help.language"],
  ["?", "help.help"],
  ["Esc", "help.close"],
];

export function HelpDialog({ state, say, onClose }: { state: Live; say: Say; onClose: () => void }) {
  const { singleKeys } = useStore(prefs);
  return (
    <Dialog title={say("help.title")} onClose={onClose}>
      <dl class="keys">
        {KEYS.map(([keys, name]) => (
          <div>
            <dt>
              {keys.split(/\s+/).map((one) => (
                <kbd>{one}</kbd>
              ))}
            </dt>
            <dd>{say(name)}</dd>
          </div>
        ))}
      </dl>
      <label class="check">
        <input
          type="checkbox"
          checked={singleKeys}
          onChange={(event) => choose({ singleKeys: event.currentTarget.checked })}
        />
        {say("help.single")}
      </label>
      <p class="hint">
        <a href="/docs">{say("help.documents")}</a>
        {state.overview && ` · ${say("help.version", { version: state.overview.version })}`}
      </p>
      <div class="buttons">
        <button type="button" class="main" onClick={onClose}>
          {say("act.close")}
        </button>
      </div>
    </Dialog>
  );
}
