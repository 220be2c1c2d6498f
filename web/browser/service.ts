/** A real service with a folder of its own, a real browser, and load from the drill. Nothing is left behind. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { accessSync, constants, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";

/** The program under test: the one of the last build, or `DASHBOARD_BIN`. */
export const BINARY =
  process.env["DASHBOARD_BIN"] ?? join(process.env["CARGO_TARGET_DIR"] ?? join("..", "target"), "debug", "stockade");

export interface Service {
  url: string;
  data: string;
  stop: () => Promise<void>;
}

export function temporaryFolder(): string {
  return mkdtempSync(join(tmpdir(), "stockade-dashboard-"));
}

/** Starts a service on a free port; with `folder` on data that are there already. */
export async function start(folder = temporaryFolder()): Promise<Service> {
  const data = join(folder, "data");
  const child = spawn(BINARY, ["serve", "--json", "--log-level", "warn", "--data", data], {
    env: { ...process.env, STOCKADE_LISTEN: "127.0.0.1:0" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const url = await new Promise<string>((resolve, reject) => {
    child.once("error", (error) => reject(new Error(`${BINARY} cannot be started (cargo build?): ${error.message}`)));
    child.once("exit", (code) => reject(new Error(`the service ended at once: ${code}`)));
    createInterface({ input: child.stdout }).once("line", (line) => {
      resolve((JSON.parse(line) as { listening: string }).listening);
    });
  });
  const stop = async () => {
    await ended(child);
    rmSync(folder, { recursive: true, force: true });
  };
  return { url, data, stop };
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGTERM");
  await exit;
}

/** Buyers against a running service. */
export function rush(url: string, flags: string[]): { over: Promise<number | null>; stop: () => Promise<void> } {
  const child = spawn(BINARY, ["rush", "--url", url, "--json", ...flags], { stdio: "ignore" });
  const over = new Promise<number | null>((resolve) => child.once("exit", resolve));
  return { over, stop: () => ended(child) };
}

export function createKey(data: string, name: string, scopes: string): string {
  const text = execFileSync(BINARY, ["key", "create", name, "--data", data, "--scope", scopes, "--json"], {
    encoding: "utf8",
  });
  return (JSON.parse(text) as { key: string }).key;
}

/** What a program does beside the page. */
export async function call(url: string, method: string, path: string, body?: unknown, key?: string): Promise<Response> {
  return fetch(url + path, {
    method,
    headers: { "content-type": "application/json", ...(key ? { authorization: `Bearer ${key}` } : {}) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

export async function launch(): Promise<Browser> {
  const names = ["chromium", "chromium-browser", "google-chrome", "chrome"];
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  const places = names.flatMap((name) => folders.map((folder) => join(folder, name)));
  const executablePath = process.env["DASHBOARD_CHROMIUM"] ?? places.find(isProgram);
  if (!executablePath) throw new Error("no Chromium: run tools/setup.sh, or name one in DASHBOARD_CHROMIUM");
  // As root, as in a container, Chromium refuses its sandbox; the page it shows is our own.
  const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  return chromium.launch({ executablePath, args });
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

export interface Watched {
  page: Page;
  /** What the browser complained about: errors of scripts, and what the policy forbade. */
  complaints: string[];
}

/** A page in a fresh profile, with everything that it complains about. */
export async function open(browser: Browser, url: string, look: BrowserContextOptions): Promise<Watched> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...look });
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => {
    // The browser notes every refusal (409, 412); those are what the tests ask for.
    const isRefusal = message.text().startsWith("Failed to load resource");
    if (["error", "warning"].includes(message.type()) && !isRefusal) complaints.push(message.text());
  });
  page.on("dialog", (dialog) => {
    complaints.push(`a name was run: ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.goto(url);
  return { page, complaints };
}

/** Pictures to look at, where `DASHBOARD_SHOTS` says. */
export async function shot(page: Page, name: string): Promise<void> {
  const folder = process.env["DASHBOARD_SHOTS"];
  if (folder) await page.screenshot({ path: join(folder, `${name}.png`) });
}
