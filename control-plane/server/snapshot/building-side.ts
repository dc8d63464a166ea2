// The thread's side of building.ts.
import { parseRuleDocument } from '../../../shared/rules/document/document.ts';
import { isError, type Problem, problemOf } from '../../../shared/rules/problem/problem.ts';
import type { RuleDocument } from '../../../shared/rules/rule-document.ts';
import type { DoJob } from '../../../shared/thread/thread-side.ts';
import { loadProtos } from '../../../shared/wire/protos.ts';
import { type BuildOutcome, buildSnapshots } from './build.ts';
import { receiveJob, toBuiltPieces, withRulesOf } from './building-pieces.ts';

/** Maximum number of problems: further ones help no author. After as many errors the remaining files are not read, and
 * no more errors or other problems are reported than this. */
const mostProblems = 1_000;

export const doBuildJob: DoJob = (next, send, check) => {
  const { revision, options, nowMs, needs } = receiveJob(next);
  const documents: RuleDocument[] = [];
  let errors = 0;
  function parse(text: string, path: string) {
    check();
    if (errors >= mostProblems) return { document: undefined, problems: [] };
    const parsed = parseRuleDocument(text, path);
    errors += parsed.problems.filter(isError).length;
    if (parsed.document !== undefined) documents.push(parsed.document);
    return parsed;
  }
  function parseAlone(name: string): BuildOutcome {
    const [{ text, path } = { text: '', path: '' }] = revision.files;
    const { document, problems } = parseRuleDocument(text, path);
    if (document !== undefined) documents.push(withRulesOf(document, name));
    return { ok: false, problems };
  }
  function buildAll(): BuildOutcome {
    const { serialize: encode } = loadProtos().rateLimitConfig;
    return buildSnapshots(revision, options, { encode, nowMs, parse, check });
  }
  const isOfName = needs !== 'problems' && 'rulesOf' in needs;
  const outcome = toBounded(isOfName ? parseAlone(needs.rulesOf) : buildAll());
  for (const piece of toBuiltPieces(outcome, documents, needs)) {
    check();
    send(piece);
  }
};

function toBounded(outcome: BuildOutcome): BuildOutcome {
  return outcome.ok
    ? { ...outcome, warnings: firstOf(outcome.warnings), advice: firstOf(outcome.advice) }
    : { ...outcome, problems: firstOf(outcome.problems) };
}

function firstOf(problems: readonly Problem[]): readonly Problem[] {
  const left = { error: mostProblems, other: mostProblems };
  const shown = problems.filter((problem) => left[isError(problem) ? 'error' : 'other']-- > 0);
  const more = problems.length - shown.length;
  if (more === 0) return problems;
  const message = `and ${more} more problems`;
  const hint = 'repair these first, then check again';
  const [first] = shown;
  const severity = shown.some(isError) ? 'error' : 'warning';
  return [...shown, problemOf(severity, first?.rule ?? 'too-large', '(all files)', message, hint)];
}
