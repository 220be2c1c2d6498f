/** One field that goes to a SKU or to a reservation. What it is cannot be told from an id, so one says it. */
import { useState } from "preact/hooks";
import type { Live } from "../live/feed";
import { visible } from "../format";
import type { Say } from "../parts/say";
import { href } from "../route";

const FOUND_MAX = 6;

export function Search({ state, say }: { state: Live; say: Say }) {
  const [text, setText] = useState("");
  const [isOpen, setIsOpen] = useState(false);
  const wanted = text.toLowerCase();
  const found: string[] = [];
  if (text !== "") {
    for (const sku of state.hot.rows.keys()) {
      if (sku !== text && sku.toLowerCase().includes(wanted)) found.push(sku);
      if (found.length >= FOUND_MAX) break;
    }
  }
  const leave = () => {
    setText("");
    setIsOpen(false);
  };
  return (
    <form
      class="search"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        if (text === "") return;
        location.hash = href({ page: "sku", sku: text });
        leave();
      }}
      onFocusOut={(event) => {
        if (!(event.relatedTarget instanceof Node) || !event.currentTarget.contains(event.relatedTarget)) setIsOpen(false);
      }}
      onKeyDown={(event) => {
        if (event.key === "Escape") leave();
        if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
        const stops = [...event.currentTarget.querySelectorAll<HTMLElement>("input, a")];
        const here = stops.findIndex((stop) => stop === document.activeElement);
        stops[Math.max(0, Math.min(stops.length - 1, here + (event.key === "ArrowDown" ? 1 : -1)))]?.focus();
        event.preventDefault();
      }}
    >
      <input
        id="search"
        type="search"
        value={text}
        placeholder={say("search.label")}
        aria-label={say("search.hint")}
        autocomplete="off"
        spellcheck={false}
        onFocus={() => setIsOpen(true)}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setIsOpen(true);
        }}
      />
      <kbd>/</kbd>
      {isOpen && text !== "" && (
        <ul>
          <li>
            <a href={href({ page: "sku", sku: text })} onClick={leave}>
              <small>{say("search.as_sku")}</small> <bdi>{visible(text)}</bdi>
            </a>
          </li>
          <li>
            <a href={href({ page: "reservation", id: text })} onClick={leave}>
              <small>{say("search.as_reservation")}</small> <bdi>{visible(text)}</bdi>
            </a>
          </li>
          {found.map((sku) => (
            <li key={sku}>
              <a href={href({ page: "sku", sku })} onClick={leave}>
                <small>{say("search.as_sku")}</small> <bdi>{visible(sku)}</bdi>
              </a>
            </li>
          ))}
        </ul>
      )}
    </form>
  );
}
