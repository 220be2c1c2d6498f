/** Refusals by the line of defence that made them. */
import { rate } from "../format";
import { codeText } from "../i18n/codes";
import { type LineOfDefence, lineOf, type Series } from "../live/series";
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

export const Defence = once(({ series, say }: Props) => {
  const totals = series.last?.outcomes ?? new Map<string, number>();
  const grown = series.outcomes();
  const seconds = series.seconds;
  const lines = LINES.map((line) => {
    const codes = [...totals].filter(([code, total]) => lineOf(code) === line && total > 0);
    codes.sort((a, b) => b[1] - a[1]);
    return { line, codes };
  });
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
        {lines.map(({ line, codes }) => (
          <tbody key={line}>
            <tr class="group">
              <th colSpan={3} scope="rowgroup">
                {say(`defence.${line}`)} <small>{say(`defence.${line}_about`)}</small>
              </th>
            </tr>
            {codes.length === 0 && (
              <tr class="none">
                <td colSpan={3}>{say("defence.nothing")}</td>
              </tr>
            )}
            {codes.map(([code, total]) => (
              <tr key={code}>
                <td>
                  {codeText(code, say.lang)} <code>{code}</code>
                </td>
                <td class="num">{seconds > 0 ? rate((grown.get(code) ?? 0) / seconds, say.lang) : "–"}</td>
                <td class="num">{number(say, total)}</td>
              </tr>
            ))}
          </tbody>
        ))}
      </table>
    </Panel>
  );
});
