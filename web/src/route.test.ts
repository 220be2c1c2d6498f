import { expect, it } from "vitest";
import { href, type Route, read } from "./route";

it("goes to every page and back", () => {
  const routes: Route[] = [
    { page: "overview" },
    { page: "sku", sku: "A/1 ?#%2F&<b>库" },
    { page: "reservation", id: "o-1/../x" },
    { page: "reservations" },
    { page: "reservations", owner: "a&b=c", sku: "+ %", status: "pending" },
  ];
  for (const route of routes) expect(read(href(route))).toEqual(route);
});

it("takes what was typed by hand", () => {
  expect(read("")).toEqual({ page: "overview" });
  expect(read("#/nowhere/x")).toEqual({ page: "overview" });
  expect(read("#/sku/")).toEqual({ page: "overview" });
  expect(read("#/sku/100%")).toEqual({ page: "sku", sku: "100%" });
});
