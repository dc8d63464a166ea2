// The JSON of a problem in rules, as the admin API sends it and its clients read it.
import Type from 'typebox';
import type { Problem } from '../../../shared/rules/problem/problem.ts';
import { isProblemRule } from '../../../shared/rules/problem/problem-rule.ts';
import { orNull, toNulls } from '../api-shape.ts';

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
  return toNulls({ severity, rule, file, line, column, path, message, hint, sourceLine });
}

export function fromProblemJson(json: ProblemJson): Problem {
  const { severity, file, path, message, line, column, hint, sourceLine } = json;
  return {
    ...{ severity, file, path, message },
    // A newer control plane may have more kinds.
    rule: isProblemRule(json.rule) ? json.rule : 'other',
    ...{ line: line ?? undefined, column: column ?? undefined },
    ...{ hint: hint ?? undefined, sourceLine: sourceLine ?? undefined },
  };
}

/** The members of a problem document that describe errors in rules, besides the usual ones. */
export const refusedRules = Type.Object({ problems: Type.Optional(Type.Array(problemJson)) });
