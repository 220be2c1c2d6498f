/** Refusals by the line of defence that made them. */
import { rate } from "../format";
import { codeText } from "../i18n/codes";
import { byOutcome, GATE_LINES, type LineOfDefence, lineOf, type Series } from "../live/series";
import { Panel } from "../parts/basic";
import { once } from "../parts/once";
import { type Say, number } from "../parts/say";

const LINES: readonly LineOfDefence[] = ["gate", "tier", "ledger"];

interface Props {
  series: Series;
  /** Drawn again when it changes. */
  round: number;
  say: Say;
}

interface Row {
  name: string;
  about: string;
  total: number;
  /** In the last seconds. */
  grown: number;
}

const row = (name: string, about: string, totals: Map<string, number>, grown: Map<string, number>): Row => ({
  name,
  about,
  total: totals.get(name) ?? 0,
  grown: grown.get(name) ?? 0,
});

export const Defence = once(({ series, say }: Props) => {
  const seconds = series.seconds;
  const perLine = series.stopped();
  const perOutcome = series.outcomes();
  const stopped = series.last?.stopped ?? new Map<string, number>();
  const outcomes = byOutcome(series.last?.commands ?? new Map<string, number>());
  const gate = GATE_LINES.map((name) => row(name, say(`gate.${name}`), stopped, perLine));
  const decided = (line: LineOfDefence) =>
    [...outcomes.keys()]
      .filter((code) => lineOf(code) === line)
      .map((code) => row(code, codeText(code, say.lang), outcomes, perOutcome))
      .sort((a, b) => b.total - a.total);
  const rows = { gate, tier: decided("tier"), ledger: decided("ledger") };
  const lines = LINES.map((line) => ({ line, rows: rows[line].filter(({ total }) => total > 0) }));
  return (
    <Panel title={say("defence.title")} class="defence">
      <table>
        <thead>
          <tr>
            <th>{say("defence.code")}</th>
            <th class="num">{say("figure.per_second")}</th>
            <th class="num">{say("defence.total")}</th>
          </tr>
        </thead>
        {lines.map(({ line, rows }) => (
          <tbody key={line}>
            <tr class="group">
              <th colSpan={3} scope="rowgroup">
                {say(`defence.${line}`)} <small>{say(`defence.${line}_about`)}</small>
              </th>
            </tr>
            {rows.length === 0 && (
              <tr class="none">
                <td colSpan={3}>{say("defence.nothing")}</td>
              </tr>
            )}
            {rows.map(({ name, about, total, grown }) => (
              <tr key={name}>
                <td>
                  {about} <code>{name}</code>
                </td>
                <td class="num">{seconds > 0 ? rate(grown / seconds, say.lang) : "–"}</td>
                <td class="num">{number(say, total)}</td>
              </tr>
            ))}
          </tbody>
        ))}
      </table>
    </Panel>
  );
});
