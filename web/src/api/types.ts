/** The API's shapes that the page reads; see `/openapi.json`. Figures are whole numbers up to 2^53-1, exact in JSON. */

export type Scope = "reserve" | "stock" | "read" | "admin";

export interface Figures {
  why: string | null;
  epoch: number;
  decided_entry: number;
  recorded_entry: number;
  waiting_commands: number;
  live_reservations: number;
}

export interface Overview {
  at_ms: number;
  status: "ready" | "recovering" | "closing" | "poisoned";
  version: string;
  tenant: string;
  scopes: Scope[];
  figures: Figures | null;
}

export interface Counters {
  on_hand: number;
  reserved: number;
  sold: number;
  safety_stock: number;
  available: number;
}

export interface Location extends Counters {
  location: string;
}

export interface Settings {
  limit_per_owner: number | null;
  opens_at_ms: number | null;
  closes_at_ms: number | null;
  paused: boolean;
  order: string[];
  split: boolean;
  group: string | null;
}

export interface Stock {
  sku: string;
  revision: number;
  locations: Location[];
  settings: Settings;
}

export interface StockAnswer {
  code: string;
  stock: Stock;
}

export interface StockPage {
  stock: Stock[];
  next_after: string | null;
}

export type Status = "pending" | "confirmed" | "cancelled" | "expired" | "lost";

export interface Allocation {
  location: string;
  quantity: number;
  confirmed: number;
  returned: number;
}

export interface Line {
  sku: string;
  location?: string;
  quantity: number;
  confirmed: number;
  returned: number;
  allocations: Allocation[];
}

export interface Reservation {
  id: string;
  owner: string | null;
  status: Status;
  sealed: boolean;
  mode: "reserve" | "deduct";
  granted_at_ms: number;
  expires_at_ms: number;
  lines: Line[];
}

export interface ReservationAnswer {
  code: string;
  reservation: Reservation;
}

export interface ReservationPage {
  reservations: Reservation[];
  next_before: string | null;
}

export interface Movement {
  number: number;
  at_ms: number;
  kind: string;
  actor: string;
  reason: string;
  reservation: string | null;
  owner: string | null;
  command: string | null;
  sku: string | null;
  location: string | null;
  on_hand: number;
  reserved: number;
  sold: number;
  after: Counters | null;
}

export interface MovementPage {
  movements: Movement[];
  next_before: number | null;
}

export interface LineProblem {
  index: number;
  sku: string;
  location?: string;
  asked?: number;
  available?: number;
  used?: number;
  limit?: number;
  expected?: number | null;
  found?: number | null;
  opens_at_ms?: number;
  closes_at_ms?: number;
}

export interface FieldError {
  field: string;
  found: string;
  allowed: string;
}

export interface Problem {
  status: number;
  code: string;
  title: string;
  detail: string;
  lines?: LineProblem[];
  errors?: FieldError[];
  id?: string;
  reason?: string;
  location?: string;
  result?: number;
  reserved?: number;
  retry_after_ms?: number;
  scopes?: Scope[];
}
