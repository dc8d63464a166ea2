import test from 'ava';
import type { LogDetail } from '../log.ts';
import { logProblems } from './problem-log.ts';
import type { ProblemRule } from './problem-rule.ts';

const nowhere = { line: undefined, column: undefined, hint: undefined, sourceLine: undefined };

const fieldsOf = (rule: ProblemRule) => {
  const details: (LogDetail | undefined)[] = [];
  const place = { file: 'a.yaml', path: '', ...nowhere };
  const problem = { severity: 'error', rule, message: 'it does not exist', ...place } as const;
  logProblems((_, detail) => details.push(detail), [problem], 'the rules');
  return details[0]?.fields;
};

test('a line has the kind of its problem, where it has a name', (t) => {
  t.deepEqual(fieldsOf('unreadable-file'), { file: 'a.yaml', rule: 'unreadable-file' });
  t.deepEqual(fieldsOf('other'), { file: 'a.yaml' });
});
