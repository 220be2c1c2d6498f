/** What an operator does, with the answers that go wrong: refused, changed meanwhile, lost. */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Browser, Page } from "playwright-core";
import { call, createKey, launch, open, type Service, shot, start, temporaryFolder, type Watched } from "./service";

const SKU = "A/1 库存";
const MARKUP = `<img src=x onerror=alert(1)>"'&`;

let service: Service;
let browser: Browser;
const path = (sku: string) => `/v1/stock/${encodeURIComponent(sku)}`;

beforeAll(async () => {
  [service, browser] = await Promise.all([start(), launch()]);
  for (const sku of [SKU, MARKUP]) {
    expect((await call(service.url, "PUT", path(sku), { id: `create ${sku}`, on_hand: 100 })).status).toBe(201);
  }
  const order = { id: "o-1", owner: MARKUP, mode: "reserve", lines: [{ sku: SKU, quantity: 30 }] };
  expect((await call(service.url, "POST", "/v1/reservations", order)).status).toBe(201);
});

afterAll(async () => {
  await browser?.close();
  await service?.stop();
});

const figure = (page: Page, name: string) => page.locator(`.locations tbody tr [data-figure=${name}]`).first();

/** Opens a SKU, and waits until it is shown and may be changed. */
async function openSku(sku: string): Promise<Watched> {
  const opened = await open(browser, `${service.url}/#/sku/${encodeURIComponent(sku)}`, { locale: "en-GB" });
  await figure(opened.page, "available").waitFor();
  await opened.page.locator(".actions button:enabled").first().waitFor();
  return opened;
}

async function fill(page: Page, fields: Record<string, string>): Promise<void> {
  for (const [name, value] of Object.entries(fields)) await page.locator(`dialog [name=${name}]`).fill(value);
}
const apply = (page: Page) => page.getByRole("button", { name: "Apply" }).click();
const close = (page: Page) => page.getByRole("button", { name: "Close" }).click();

it("adjusts with a reason, and sees the effect", async () => {
  const { page, complaints } = await openSku(SKU);
  await expect.poll(() => figure(page, "available").innerText()).toBe("70");
  await page.keyboard.press("a");
  await fill(page, { delta: "+25" });
  expect(await page.getByRole("button", { name: "Apply" }).isDisabled()).toBe(true);
  await fill(page, { reason: "delivery <b>7</b>" });
  await page.getByText("On hand at default: 100 → 125").waitFor();
  await apply(page);
  await page.getByText("Done. Revision 2.").waitFor();
  await close(page);
  await expect.poll(() => figure(page, "available").innerText()).toBe("95");
  await page.locator(".movements tr", { hasText: "delivery <b>7</b>" }).waitFor();
  expect(complaints).toEqual([]);
  await page.context().close();
});

it("shows a refusal's numbers", async () => {
  const { page, complaints } = await openSku(SKU);
  await page.getByRole("button", { name: "Count" }).click();
  await fill(page, { on_hand: "10", reason: "count" });
  await apply(page);
  const refusal = page.locator("dialog .note.bad");
  await refusal.getByText("below_reserved").waitFor();
  await expect.poll(() => refusal.locator(".facts").innerText()).toMatch(/On hand would be\s+10\s+Reserved there\s+30/);
  await shot(page, "refusal-light-en");
  await page.keyboard.press("Escape");
  expect(await figure(page, "on_hand").innerText()).toBe("125");
  expect(complaints).toEqual([]);
  await page.context().close();
});

it("does not overwrite what somebody else changed meanwhile", async () => {
  const { page, complaints } = await openSku(SKU);
  await page.keyboard.press("a");
  await fill(page, { delta: "-5", reason: "broken" });
  const other = { id: "other", delta: 1 };
  expect((await call(service.url, "POST", `${path(SKU)}/adjustments`, other)).status).toBe(200);
  await apply(page);
  await page.getByText("you saw revision 2, now it is 3").waitFor();
  await page.getByRole("button", { name: "Use the current revision" }).click();
  await apply(page);
  await page.getByText("Done. Revision 4.").waitFor();
  await close(page);
  await expect.poll(() => figure(page, "on_hand").innerText()).toBe("121");
  expect(complaints).toEqual([]);
  await page.context().close();
});

it("sends again what got no answer, without a second effect", async () => {
  const { page, complaints } = await openSku(SKU);
  // The first answer is lost on its way back: the service has done it.
  let lost = 0;
  await page.route("**/adjustments", async (route) => {
    if (lost++ > 0) return route.continue();
    await route.fetch();
    return route.abort();
  });
  await page.keyboard.press("a");
  await fill(page, { delta: "9", reason: "found" });
  await apply(page);
  await page.getByText("it may or may not have been done").waitFor();
  await page.getByRole("button", { name: "Send again" }).click();
  await page.getByText("Was done before; nothing was done twice.").waitFor();
  await close(page);
  await expect.poll(() => figure(page, "on_hand").innerText()).toBe("130");
  expect(complaints).toEqual([]);
  await page.context().close();
});

it("counts, pauses and configures", async () => {
  const { page, complaints } = await openSku(SKU);
  await page.keyboard.press("c");
  await fill(page, { on_hand: "9007199254740991", reason: "as large as it may be" });
  await apply(page);
  await page.getByText("Done.").waitFor();
  await close(page);
  await expect.poll(() => figure(page, "on_hand").innerText()).toBe("9,007,199,254,740,991");
  await expect.poll(() => figure(page, "available").innerText()).toBe("9,007,199,254,740,961");

  await page.keyboard.press("p");
  await fill(page, { reason: "price is wrong" });
  await apply(page);
  await page.getByText("Done.").waitFor();
  await close(page);
  await page.locator(".title .badge", { hasText: "Paused" }).waitFor();
  const order = { id: "o-2", owner: "u", mode: "reserve", lines: [{ sku: SKU, quantity: 1 }] };
  expect((await (await call(service.url, "POST", "/v1/reservations", order)).json()).code).toBe("paused");
  await page.getByRole("button", { name: "Resume" }).click();
  await fill(page, { reason: "price is right" });
  await apply(page);
  await page.getByText("Done.").waitFor();
  await close(page);
  expect((await call(service.url, "POST", "/v1/reservations", order)).status).toBe(201);

  await page.keyboard.press("s");
  await fill(page, { limit_per_owner: "2", reason: "two each" });
  await apply(page);
  await page.getByText("Done.").waitFor();
  await close(page);
  await expect.poll(() => page.locator(".settings .pairs").innerText()).toMatch(/Limit per owner\s+2/);
  expect(complaints).toEqual([]);
  await page.context().close();
});

it("finds a reservation and its history by the keyboard alone", async () => {
  const { page, complaints } = await open(browser, service.url, { locale: "en-GB" });
  await page.locator(".stock tbody tr").first().waitFor();
  expect((await call(service.url, "POST", "/v1/reservations/o-1/confirm", {})).status).toBe(200);
  await page.keyboard.press("/");
  await page.keyboard.type("o-1");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "o-1" }).waitFor();
  await page.locator(".title .badge", { hasText: "Confirmed" }).waitFor();
  const kinds = page.locator(".movements tbody tr td:nth-child(2)");
  await expect.poll(() => kinds.allInnerTexts()).toEqual(["confirm", "reserve"]);
  await shot(page, "reservation-light-en");
  // From a list by j, k and Enter.
  await page.keyboard.press("g");
  await page.keyboard.press("o");
  await page.locator(".stock tbody tr").first().waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.locator(".locations").waitFor();
  expect(complaints).toEqual([]);
  await page.context().close();
});

it("takes names for text, whatever they hold", async () => {
  const { page, complaints } = await openSku(MARKUP);
  await page.getByRole("heading", { level: 1 }).waitFor();
  expect(await page.getByRole("heading", { level: 1 }).innerText()).toBe(MARKUP);
  expect(await page.locator("img").count()).toBe(0);
  await page.goto(`${service.url}/#/reservation/o-1`);
  await page.getByRole("link", { name: MARKUP }).first().waitFor();
  expect(await page.locator("img").count()).toBe(0);
  expect(complaints).toEqual([]);
  await page.context().close();
});

it("asks for a key, keeps it for the tab, and offers what it opens", async () => {
  const folder = temporaryFolder();
  const data = `${folder}/data`;
  const [reader, admin] = [createKey(data, "reader", "read"), createKey(data, "chief", "admin")];
  const guarded = await start(folder);
  try {
    expect((await call(guarded.url, "PUT", path("K"), { id: "k", on_hand: 5 }, admin)).status).toBe(201);
    const { page, complaints } = await open(browser, guarded.url, { locale: "en-GB" });
    const enter = async (key: string) => {
      await page.locator("dialog [name=key]").fill(key);
      await page.getByRole("button", { name: "Use key" }).click();
    };
    await page.getByRole("button", { name: "Enter key" }).click();
    await enter("sk_wrong");
    await page.getByText("Key needed").waitFor();
    await page.getByRole("button", { name: "Enter key" }).click();
    await page.getByText("The key was refused").waitFor();
    await enter(reader);
    await page.locator(".stock a.name", { hasText: "K" }).click();
    await figure(page, "available").waitFor();
    for (const name of ["Adjust", "Count", "Pause", "Settings"]) {
      expect(await page.locator(".actions").getByRole("button", { name }).isDisabled(), name).toBe(true);
    }
    await page.keyboard.press("a");
    expect(await page.getByRole("dialog").count()).toBe(0);
    await page.getByRole("button", { name: "Key", exact: true }).click();
    await enter(admin);
    await expect.poll(() => page.locator(".actions").getByRole("button", { name: "Adjust" }).isDisabled()).toBe(false);
    const kept = await page.evaluate(() => [JSON.stringify(localStorage), document.cookie, location.href].join());
    expect(kept).not.toContain("sk_");
    expect(complaints).toEqual([]);

    // The service goes: the page says so, and keeps what it knew.
    await page.goto(`${guarded.url}/#/`);
    await page.locator(".stock tbody tr").first().waitFor();
    await guarded.stop();
    await page.getByText("The service does not answer").waitFor();
    expect(await page.locator(".stock tbody tr").count()).toBe(1);
    await page.context().close();
  } finally {
    await guarded.stop();
  }
});
