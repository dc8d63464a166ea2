// Checks files before they are served: with the same build as for workers, so that files which pass here are
// accepted there.
import { type ParsedDocument, parseRuleDocument } from '../../shared/rules/document/document.ts';
import { isError, type Problem } from '../../shared/rules/problem/problem.ts';
import type { RuleSet } from '../../shared/rules/rule.ts';
import type { RuleDocument } from '../../shared/rules/rule-document.ts';
import type { RateLimitConfigMessage } from '../../shared/wire/rate-limit-config-message.ts';
import type { GovernedRules } from '../policy/policy-guard.ts';
import { type BuildOptions, buildSnapshots } from '../snapshot/build.ts';
import type { Revision } from '../store/revision.ts';

export interface Examination {
  /** The documents that could be read. */
  readonly documents: readonly RuleDocument[];
  /** Undefined when there are errors. */
  readonly ruleSet: RuleSet | undefined;
  /** Equal where every node gets the same; undefined when there are errors. */
  readonly content: string | undefined;
  readonly problems: readonly Problem[];
  /** With the policy beside them; undefined when there are errors. */
  readonly governed: GovernedRules | undefined;
}

export type Examine = (files: Pick<Revision, 'files' | 'problems'>) => Examination;

export interface ExaminationDeps {
  readonly encode: (message: RateLimitConfigMessage) => Buffer;
  readonly options: BuildOptions;
}

/** Remembers the last revisions by identity. */
export function createExamine({ encode, options }: ExaminationDeps): Examine {
  const known = new WeakMap<object, Examination>();
  return (revision) => {
    const before = known.get(revision);
    if (before !== undefined) return before;
    const documents: RuleDocument[] = [];
    const parse = (text: string, path: string): ParsedDocument => {
      const parsed = parseRuleDocument(text, path);
      if (parsed.document !== undefined) documents.push(parsed.document);
      return parsed;
    };
    const outcome = buildSnapshots(revision, { ...options, advises: true }, { encode, parse });
    const examination: Examination = {
      documents,
      ruleSet: outcome.ok ? outcome.built.ruleSet : undefined,
      content: outcome.ok ? outcome.built.content : undefined,
      problems: outcome.ok ? outcome.warnings : outcome.problems,
      governed: outcome.ok ? outcome.built : undefined,
    };
    known.set(revision, examination);
    return examination;
  };
}

/** Errors of `after` that `before` does not have. */
export function addedErrors(before: readonly Problem[], after: readonly Problem[]): Problem[] {
  const key = ({ file, path, message }: Problem) => JSON.stringify([file, path, message]);
  const known = new Set(before.filter(isError).map(key));
  return after.filter((problem) => isError(problem) && !known.has(key(problem)));
}
