/** A value that tells those who watch it when it changes. */
import { useEffect, useState } from "preact/hooks";

export class Store<T> {
  #value: T;
  readonly #watchers = new Set<() => void>();

  constructor(value: T) {
    this.#value = value;
  }

  get(): T {
    return this.#value;
  }

  set(value: T): void {
    this.#value = value;
    for (const tell of this.#watchers) tell();
  }

  watch(tell: () => void): () => void {
    this.#watchers.add(tell);
    return () => this.#watchers.delete(tell);
  }
}

export function useStore<T>(store: Store<T>): T {
  const [value, setValue] = useState({ it: store.get() });
  useEffect(() => {
    const update = () => setValue({ it: store.get() });
    // It may have changed between the first render and this.
    update();
    return store.watch(update);
  }, [store]);
  return value.it;
}
