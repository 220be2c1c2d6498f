/** The page under a running sale: it sees stock fall, draws two hundred SKUs, and speaks both languages. */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Browser, Page } from "playwright-core";
import { busyFrames, described } from "./frames";
import { launch, open, rush, type Service, shot, start } from "./service";

let service: Service;
let browser: Browser;

beforeAll(async () => {
  [service, browser] = await Promise.all([start(), launch()]);
});

afterAll(async () => {
  await browser?.close();
  await service?.stop();
});

it("shows a sale while it runs", async () => {
  const { page, complaints } = await open(browser, service.url, { colorScheme: "light", locale: "en-GB" });
  await page.getByText("No SKU yet").waitFor();
  // Few at a time and more units than buyers take at once: it lasts, and SKUs sell out one by one.
  const flags = ["--buyers", "24000", "--units", "12000", "--skus", "200", "--concurrency", "4", "--ttl-seconds", "5"];
  const sale = rush(service.url, flags);
  try {
    const rows = page.locator(".stock tbody tr:not(.gap)");
    // With the row of heads. Those out of sight are not in the page, but the table scrolls to them.
    const count = (where: Page) => where.locator(".stock table").getAttribute("aria-rowcount");
    await expect.poll(() => count(page), { timeout: 20_000 }).toBe("201");
    await page.locator(".stock .scroll").evaluate((box) => box.scrollTo(0, box.scrollHeight));
    await page.locator(".stock tbody tr[aria-rowindex='201']").waitFor();
    await page.locator(".stock .scroll").evaluate((box) => box.scrollTo(0, 0));
    await page.locator(".stock tbody tr[aria-rowindex='2']").waitFor();

    // The one of those in sight that has the most left to sell: the first may be sold out.
    const inSight = await rows.evaluateAll((all) =>
      all.map((one) => ({
        name: one.querySelector("a.name")?.textContent ?? "",
        sold: Number((one.querySelectorAll("td")[3]?.textContent ?? "").replaceAll(",", "")),
      })),
    );
    const { name } = inSight.reduce((least, one) => (one.sold < least.sold ? one : least));
    await page.getByRole("searchbox", { name: "Filter by SKU" }).fill(name);
    const row = page.locator(".stock tbody tr", { has: page.getByRole("link", { name, exact: true }) });
    const sold = async () => Number((await row.locator("td").nth(3).innerText()).replaceAll(",", ""));
    const before = await sold();
    await expect.poll(sold, { timeout: 20_000 }).toBeGreaterThan(before);
    await page.getByRole("searchbox", { name: "Filter by SKU" }).fill("");
    const granted = page.locator(".legend li", { hasText: "Granted" }).locator("b");
    await expect.poll(async () => Number((await granted.innerText()).replaceAll(",", ""))).toBeGreaterThan(0);
    await expect.poll(() => page.locator(".latency tbody tr").count()).toBeGreaterThanOrEqual(3);

    const frames = await busyFrames(page, ".stock tbody", 6_000);
    expect(frames.wall.length).toBeGreaterThan(2);
    console.log(`at 200 SKUs: ${described(frames)}`);
    await shot(page, "overview-light-en");

    // Dark and Chinese by the browser's own settings.
    const other = await open(browser, service.url, { colorScheme: "dark", locale: "zh-CN" });
    await other.page.getByRole("heading", { name: "当前库存" }).waitFor();
    await expect.poll(() => count(other.page), { timeout: 20_000 }).toBe("201");
    await expect.poll(() => other.page.locator(".latency tbody tr").count()).toBeGreaterThanOrEqual(2);
    await shot(other.page, "overview-dark-zh");
    await other.page.locator(".stock a.name").first().click();
    await other.page.getByRole("heading", { name: "库存流水" }).waitFor();
    await other.page.locator(".movements tbody tr").first().waitFor();
    await shot(other.page, "sku-dark-zh");
    expect(other.complaints).toEqual([]);
    await other.page.context().close();

    // Sold out, and the line that stopped it.
    const stopped = page.locator(".defence tr", { hasText: "insufficient_stock" });
    await stopped.waitFor({ timeout: 30_000 });
    await page.getByText("Sold out").last().waitFor();
  } finally {
    await sale.stop();
  }
  expect(complaints).toEqual([]);
  await page.context().close();
});

it("keeps the chosen language and theme", async () => {
  const { page, complaints } = await open(browser, service.url, { colorScheme: "light", locale: "en-GB" });
  const look = () => page.locator("html").evaluate((root: HTMLElement) => [root.lang, root.dataset["theme"] ?? "system"]);
  const ground = () => page.locator("body").evaluate((body) => getComputedStyle(body).backgroundColor);
  await page.getByRole("heading", { name: "Orders per second" }).waitFor();
  const light = await ground();
  await page.keyboard.press("l");
  await page.getByRole("heading", { name: "每秒订单" }).waitFor();
  await page.keyboard.press("t");
  await page.keyboard.press("t");
  await expect.poll(look).toEqual(["zh-CN", "dark"]);
  expect(await ground()).not.toBe(light);
  await page.reload();
  await page.getByRole("heading", { name: "每秒订单" }).waitFor();
  expect(await look()).toEqual(["zh-CN", "dark"]);
  await page.keyboard.press("?");
  await page.getByRole("dialog").waitFor();
  await shot(page, "help-dark-zh");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  expect(complaints).toEqual([]);
  await page.context().close();
});

it("runs nothing that did not come from the service", async () => {
  const { page } = await open(browser, service.url, {});
  await page.locator("main").waitFor();
  const tried = await page.evaluate(async () => {
    const violations: string[] = [];
    document.addEventListener("securitypolicyviolation", (event) => violations.push(event.effectiveDirective));
    let markup = "taken";
    try {
      document.createElement("div").innerHTML = "<b>x</b>";
    } catch {
      markup = "refused";
    }
    const style = document.createElement("style");
    style.textContent = "body { display: none }";
    document.head.append(style);
    const away = await fetch("https://example.org/").then(
      () => "sent",
      () => "refused",
    );
    // They are told in tasks of their own.
    for (let turn = 0; violations.length < 3 && turn < 100; turn++) await new Promise((go) => setTimeout(go, 20));
    return { markup, away, shown: getComputedStyle(document.body).display, violations: violations.sort() };
  });
  expect(tried).toMatchObject({ markup: "refused", away: "refused", shown: "block" });
  expect(new Set(tried.violations)).toEqual(new Set(["connect-src", "require-trusted-types-for", "style-src-elem"]));
  await page.context().close();
});
