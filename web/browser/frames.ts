/** How long the page's thread is busy in a frame in which something was drawn. */
import type { Page } from "playwright-core";

export interface Frames {
  /**
   * Milliseconds by the clock, from the first callback of each frame to the first task after it was styled, laid out
   * and painted. Only frames in which the watched element changed: the others do nothing.
   */
  wall: number[];
  /** Milliseconds of processor time of the page's thread from one such frame to the next: all of a second's work. */
  cpu: { script: number; style: number; layout: number };
}

/** On a busy machine the clock also counts the time of others; the processor time does not. */
export async function busyFrames(page: Page, watched: string, ms: number): Promise<Frames> {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const before = await metrics();
  const wall = await wallTimes(page, watched, ms);
  const after = await metrics();
  await session.detach();
  const each = (name: string) => (((after.get(name) ?? 0) - (before.get(name) ?? 0)) * 1000) / wall.length;
  const cpu = {
    script: each("ScriptDuration"),
    style: each("RecalcStyleDuration"),
    layout: each("LayoutDuration"),
  };
  return { wall, cpu };

  async function metrics(): Promise<Map<string, number>> {
    const { metrics } = await session.send("Performance.getMetrics");
    return new Map(metrics.map(({ name, value }) => [name, value]));
  }
}

async function wallTimes(page: Page, watched: string, ms: number): Promise<number[]> {
  return page.evaluate(
    ({ watched, ms }) =>
      new Promise<number[]>((resolve, reject) => {
        const frames: number[] = [];
        const until = performance.now() + ms;
        let changed = false;
        const element = document.querySelector(watched);
        if (!element) {
          reject(new Error(`no ${watched}`));
          return;
        }
        const watcher = new MutationObserver(() => {
          changed = true;
        });
        watcher.observe(element, { subtree: true, childList: true, characterData: true, attributes: true });
        // Asked for in the frame before, so that it is the first callback of its frame.
        const frame = () => {
          const began = performance.now();
          if (began > until) {
            watcher.disconnect();
            resolve(frames);
            return;
          }
          requestAnimationFrame(frame);
          const channel = new MessageChannel();
          channel.port1.onmessage = () => {
            if (changed) frames.push(performance.now() - began);
            changed = false;
          };
          channel.port2.postMessage(0);
        };
        requestAnimationFrame(frame);
      }),
    { watched, ms },
  );
}

function quantile(values: number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? NaN;
}

export function described({ wall, cpu }: Frames): string {
  const [p50, p95, max] = [0.5, 0.95, 1].map((share) => quantile(wall, share).toFixed(1));
  const parts = Object.entries(cpu).map(([name, ms]) => `${name} ${ms.toFixed(1)}`);
  return `${wall.length} frames, ms by the clock p50 ${p50} p95 ${p95} max ${max}; processor ms a second: ${parts.join(", ")}`;
}
