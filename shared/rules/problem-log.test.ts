import test from 'ava';
import type { LogDetail } from '../log.ts';
import { logProblems } from './problem-log.ts';

const nowhere = { line: undefined, column: undefined, hint: undefined, sourceLine: undefined };

const fieldsOf = (message: string) => {
  const details: (LogDetail | undefined)[] = [];
  const problem = { severity: 'error', file: 'a.yaml', path: '', message, ...nowhere } as const;
  logProblems((_, detail) => details.push(detail), [problem], 'the rules');
  return details[0]?.fields;
};

test('a line has the kind of its problem, where it has a name', (t) => {
  t.deepEqual(fieldsOf('it does not exist'), { file: 'a.yaml', rule: 'unreadable-file' });
  t.deepEqual(fieldsOf('something new'), { file: 'a.yaml' });
});
