/** What is shown when something could not be read. */
import type { Result } from "../api/client";
import { Note } from "../parts/basic";
import { ProblemNote } from "../parts/problem";
import type { Say } from "../parts/say";

export function Failure({ result, say }: { result: Result<unknown> | null; say: Say }) {
  if (result === null) return <p class="empty">{say("loading")}</p>;
  if (result.ok) return null;
  if ("problem" in result) return <ProblemNote problem={result.problem} say={say} />;
  return <Note tone="bad">{say("refresh.failed", { detail: result.unreachable })}</Note>;
}
