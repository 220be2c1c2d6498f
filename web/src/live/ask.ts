/** Asks for something again and again while it is shown. An answer that comes after the question changed is dropped. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Result } from "../api/client";

export interface Asked<T> {
  result: Result<T> | null;
  again: () => void;
}

export function useAsked<T>(ask: () => Promise<Result<T>>, what: string, everyMs: number): Asked<T> {
  const [state, setState] = useState<{ what: string; result: Result<T> } | null>(null);
  const [turn, setTurn] = useState(0);
  const latest = useRef(ask);
  latest.current = ask;
  useEffect(() => {
    let over = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const run = async () => {
      if (!document.hidden) {
        const result = await latest.current();
        if (over) return;
        setState({ what, result });
      }
      timer = setTimeout(() => void run(), everyMs);
    };
    void run();
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [what, everyMs, turn]);
  return { result: state?.what === what ? state.result : null, again: () => setTurn((old) => old + 1) };
}
