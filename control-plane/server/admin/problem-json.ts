// The JSON of a problem in rules, as the admin API sends it and its clients read it.
import Type from 'typebox';
import type { Problem } from '../../../shared/rules/problem/problem.ts';
import { isProblemRule } from '../../../shared/rules/problem/problem-rule.ts';
import { orNull } from '../or-null.ts';

export const problemJson = Type.Object(
  {
    severity: Type.Union([Type.Literal('error'), Type.Literal('warning'), Type.Literal('note')]),
    rule: Type.String({ description: 'Which kind of problem it is, such as unknown-key' }),
    file: Type.String(),
    line: orNull(Type.Integer()),
    column: orNull(Type.Integer()),
    path: Type.String(),
    message: Type.String(),
    hint: orNull(Type.String()),
    sourceLine: orNull(Type.String()),
  },
  { title: 'RulesProblem' },
);
export type ProblemJson = Type.Static<typeof problemJson>;

export function toProblemJson(problem: Problem): ProblemJson {
  const { severity, rule, file, line, column, path, message, hint, sourceLine } = problem;
  return {
    severity,
    rule,
    file,
    line: line ?? null,
    column: column ?? null,
    path,
    message,
    hint: hint ?? null,
    sourceLine: sourceLine ?? null,
  };
}

export function fromProblemJson(json: ProblemJson): Problem {
  const { severity, rule, file, line, column, path, message, hint, sourceLine } = json;
  return {
    severity,
    // A newer control plane may have more kinds.
    rule: isProblemRule(rule) ? rule : 'other',
    file,
    line: line ?? undefined,
    column: column ?? undefined,
    path,
    message,
    hint: hint ?? undefined,
    sourceLine: sourceLine ?? undefined,
  };
}

/** The members of a problem document that describe errors in rules, besides the usual ones. */
export const refusedRules = Type.Object({ problems: Type.Optional(Type.Array(problemJson)) });
