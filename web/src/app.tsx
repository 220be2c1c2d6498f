/** The frame of the page: bar, banner, the view of the address, shortcuts. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { moment } from "./format";
import { type Live, live, may } from "./live/feed";
import { choose, nextTheme, prefs } from "./live/prefs";
import { useStore } from "./live/store";
import { Note } from "./parts/basic";
import { type Say, useSay } from "./parts/say";
import { href, read } from "./route";
import { type Shortcuts, useShortcuts } from "./shortcuts";
import { HelpDialog, KeyDialog } from "./views/dialogs";
import { OverviewView } from "./views/overview";
import { ReservationView } from "./views/reservation";
import { ReservationsView } from "./views/reservations";
import { Search } from "./views/search";
import { SkuView } from "./views/sku";

export function App() {
  const state = useStore(live);
  const chosen = useStore(prefs);
  const say = useSay();
  const [hash, setHash] = useState(location.hash);
  const [dialog, setDialog] = useState<"key" | "help" | null>(null);
  // The system's look may change while the page is open.
  const [systemDark, setSystemDark] = useState(() => matchMedia("(prefers-color-scheme: dark)").matches);
  useEffect(() => {
    const moved = () => {
      setHash(location.hash);
      scrollTo(0, 0);
    };
    addEventListener("hashchange", moved);
    const query = matchMedia("(prefers-color-scheme: dark)");
    const turned = () => setSystemDark(query.matches);
    query.addEventListener("change", turned);
    return () => {
      removeEventListener("hashchange", moved);
      query.removeEventListener("change", turned);
    };
  }, []);
  const route = useMemo(() => read(hash), [hash]);
  const look = chosen.theme === "system" ? (systemDark ? "dark" : "light") : chosen.theme;
  const here = route.page === "sku" ? route.sku : route.page === "reservation" ? route.id : say(`nav.${route.page}`);
  useEffect(() => {
    document.title = `${here} · Stockade`;
  }, [here]);

  const shortcuts: Shortcuts = {
    help: () => setDialog("help"),
    theme: () => choose({ theme: nextTheme(prefs.get().theme) }),
    language: () => choose({ lang: prefs.get().lang === "en" ? "zh" : "en" }),
  };
  useShortcuts(shortcuts, chosen.singleKeys && dialog === null);

  return (
    <>
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), document.getElementById("main")?.focus())}>
        {say("bar.skip")}
      </a>
      <header class="topbar">
        <a class="brand" href={href({ page: "overview" })}>
          Stockade
        </a>
        <nav aria-label={say("nav.main")}>
          <a href={href({ page: "overview" })} aria-current={route.page === "overview" ? "page" : undefined}>
            {say("nav.overview")}
          </a>
          <a
            href={href({ page: "reservations" })}
            aria-current={route.page.startsWith("reservation") ? "page" : undefined}
          >
            {say("nav.reservations")}
          </a>
        </nav>
        <Search state={state} say={say} />
        <Health state={state} say={say} />
        <div class="switches">
          <button type="button" onClick={() => setDialog("key")}>
            {say("bar.key")}
          </button>
          <button
            type="button"
            title={say("bar.theme", { theme: say(`bar.theme.${chosen.theme}`) })}
            aria-label={say("bar.theme", { theme: say(`bar.theme.${chosen.theme}`) })}
            onClick={shortcuts.theme}
          >
            {{ system: "◐", light: "○", dark: "●" }[chosen.theme]}
          </button>
          <button type="button" aria-label={say("bar.language_label")} onClick={shortcuts.language}>
            {say("bar.language")}
          </button>
          <button type="button" aria-label={say("bar.help")} title={say("bar.help")} onClick={shortcuts.help}>
            ?
          </button>
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        <Banner state={state} say={say} onKey={() => setDialog("key")} />
        {state.connection !== "locked" && (
          <>
            {route.page === "overview" && <OverviewView state={state} say={say} look={look} />}
            {route.page === "sku" && (
              <SkuView
                key={route.sku}
                sku={route.sku}
                state={state}
                say={say}
                singleKeys={chosen.singleKeys && dialog === null}
              />
            )}
            {route.page === "reservations" && <ReservationsView key={hash} route={route} state={state} say={say} />}
            {route.page === "reservation" && <ReservationView key={route.id} id={route.id} state={state} say={say} />}
          </>
        )}
      </main>
      {dialog === "key" && <KeyDialog state={state} say={say} onClose={() => setDialog(null)} />}
      {dialog === "help" && <HelpDialog state={state} say={say} onClose={() => setDialog(null)} />}
    </>
  );
}

function Health({ state, say }: { state: Live; say: Say }) {
  const name = state.connection === "ok" ? (state.overview?.status ?? "starting") : state.connection;
  const tone = name === "ready" ? "good" : name === "starting" || name === "locked" ? "calm" : "bad";
  const tenant = state.overview?.tenant;
  return (
    <p class="health" role="status">
      {tenant !== undefined && tenant !== "default" && <span class="faint">{say("tenant", { tenant })}</span>}
      <span class={`badge ${tone}`}>{say(`status.${name}`)}</span>
    </p>
  );
}

function Banner({ state, say, onKey }: { state: Live; say: Say; onKey: () => void }) {
  if (state.connection === "locked") {
    return (
      <div class="note warn" role="alert">
        <p>
          {say("banner.locked")} {state.refusal?.detail}
        </p>
        <button type="button" class="main" onClick={onKey}>
          {say("banner.enter_key")}
        </button>
      </div>
    );
  }
  if (state.connection === "lost") {
    const time = state.at === 0 ? "–" : moment(state.at, Date.now(), say.lang);
    return <Note tone="bad">{say("banner.lost", { time })}</Note>;
  }
  const overview = state.overview;
  if (overview && overview.status !== "ready") {
    return <Note tone="bad">{say("banner.not_ready", { why: overview.figures?.why ?? say(`status.${overview.status}`) })}</Note>;
  }
  if (overview && !may(state, "read")) return <Note tone="warn">{say("banner.no_read")}</Note>;
  return null;
}
