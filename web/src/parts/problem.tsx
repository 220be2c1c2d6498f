/** A refusal with its numbers. */
import type { Problem } from "../api/types";
import { moment, span, visible } from "../format";
import { codeText } from "../i18n/codes";
import { type Say, number } from "./say";

export function ProblemNote({ problem, say }: { problem: Problem; say: Say }) {
  const facts: [string, string][] = [];
  const revision = (value: number | null) => (value === null ? say("sku.none") : number(say, value));
  const add = (name: string, value: number | undefined) => {
    if (value !== undefined) facts.push([name, number(say, value)]);
  };
  if (problem.location !== undefined) facts.push([say("problem.location"), visible(problem.location)]);
  add(say("problem.result"), problem.result);
  add(say("problem.reserved"), problem.reserved);
  if (problem.retry_after_ms !== undefined) facts.push([say("problem.retry"), span(Math.max(1000, problem.retry_after_ms), say.lang)]);
  if (problem.scopes) facts.push([say("problem.scopes"), problem.scopes.join(", ")]);
  for (const line of problem.lines ?? []) {
    add(say("problem.asked"), line.asked);
    add(say("problem.available"), line.available);
    add(say("problem.used"), line.used);
    add(say("problem.limit"), line.limit);
    if (line.expected !== undefined) facts.push([say("problem.expected"), revision(line.expected)]);
    if (line.found !== undefined) facts.push([say("problem.found"), revision(line.found)]);
    if (line.opens_at_ms !== undefined) facts.push([say("sku.opens"), moment(line.opens_at_ms, Date.now(), say.lang)]);
    if (line.closes_at_ms !== undefined) facts.push([say("sku.closes"), moment(line.closes_at_ms, Date.now(), say.lang)]);
  }
  return (
    <div class="note bad" role="alert">
      <p>
        <strong>{codeText(problem.code, say.lang)}</strong> <code>{problem.code}</code>
      </p>
      {problem.detail && <p class="detail">{problem.detail}</p>}
      {facts.length > 0 && (
        <dl class="facts">
          {facts.map(([name, value]) => (
            <div>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
      )}
      {problem.errors && (
        <table>
          <thead>
            <tr>
              <th>{say("problem.field")}</th>
              <th>{say("problem.found")}</th>
              <th>{say("problem.allowed")}</th>
            </tr>
          </thead>
          <tbody>
            {problem.errors.map((error) => (
              <tr>
                <td>
                  <code>{error.field}</code>
                </td>
                <td>{visible(error.found)}</td>
                <td>{error.allowed}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}
