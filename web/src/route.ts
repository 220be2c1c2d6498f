/** Where in the page one is: kept after the `#`, so that the service needs one route and a link can be sent around. */

export type Route =
  | { page: "overview" }
  | { page: "sku"; sku: string }
  | { page: "reservations"; owner?: string; sku?: string; status?: string }
  | { page: "reservation"; id: string };

export function href(route: Route): string {
  switch (route.page) {
    case "overview":
      return "#/";
    case "sku":
      return `#/sku/${encodeURIComponent(route.sku)}`;
    case "reservation":
      return `#/reservation/${encodeURIComponent(route.id)}`;
    case "reservations": {
      const params = new URLSearchParams();
      for (const name of ["owner", "sku", "status"] as const) {
        const value = route[name];
        if (value) params.set(name, value);
      }
      const text = params.toString();
      return text ? `#/reservations?${text}` : "#/reservations";
    }
  }
}

export function read(hash: string): Route {
  const text = hash.replace(/^#\/?/, "");
  const mark = text.indexOf("?");
  const path = mark < 0 ? text : text.slice(0, mark);
  const slash = path.indexOf("/");
  const head = slash < 0 ? path : path.slice(0, slash);
  const id = slash < 0 ? "" : decode(path.slice(slash + 1));
  if (head === "sku" && id) return { page: "sku", sku: id };
  if (head === "reservation" && id) return { page: "reservation", id };
  if (head === "reservations") {
    const params = new URLSearchParams(mark < 0 ? "" : text.slice(mark + 1));
    const route: Route = { page: "reservations" };
    for (const name of ["owner", "sku", "status"] as const) {
      const value = params.get(name);
      if (value) route[name] = value;
    }
    return route;
  }
  return { page: "overview" };
}

/** A hash that was typed by hand may not be well encoded. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
