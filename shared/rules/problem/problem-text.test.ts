import test from 'ava';
import type { LogDetail } from '../../log.ts';
import { type Problem, problemOf } from './problem.ts';
import type { ProblemRule } from './problem-rule.ts';
import { formatProblem, formatProblems, logProblems } from './problem-text.ts';

const problem: Problem = {
  severity: 'error',
  rule: 'other',
  file: 'config/a.yaml',
  line: 3,
  column: 7,
  path: 'descriptors[0].unit',
  message: "unknown key 'unti'",
  hint: "did you mean 'unit'?",
  sourceLine: '      unti: hour',
};

test('a problem is shown as its position, the line with a caret, and the hint', (t) => {
  t.is(
    formatProblem(problem),
    [
      "config/a.yaml:3:7: error: unknown key 'unti'",
      '          unti: hour',
      '          ^',
      "    hint: did you mean 'unit'?",
    ].join('\n'),
  );
});

test('without lines the path in the document is the position', (t) => {
  t.is(
    formatProblem({ ...problem, line: undefined, column: undefined, sourceLine: undefined }),
    "config/a.yaml: error: descriptors[0].unit: unknown key 'unti'\n    hint: did you mean 'unit'?",
  );
});

test('without lines and path the file is the position', (t) => {
  const full = { line: undefined, column: undefined, sourceLine: undefined, path: '' };
  t.is(
    formatProblem({ ...problem, ...full, hint: undefined }),
    "config/a.yaml: error: unknown key 'unti'",
  );
});

test('tabs and control characters keep the caret under the position', (t) => {
  const sourceLine = '\tk: a\u001b[31m\u202eb x';
  const text = formatProblem({ ...problem, sourceLine, column: sourceLine.indexOf('x') + 1 });
  const [, line = '', caret = ''] = text.split('\n');
  t.is(line, '      k: a\\u{1b}[31m\\u{202e}b x');
  t.is(line.charAt(caret.length - 1), 'x');
});

test('control characters of names and messages are escaped', (t) => {
  const text = formatProblem({ ...problem, file: 'a\nb', message: 'is \u001b[2J', hint: 'x\ry' });
  t.true(text.startsWith('a\\u{a}b:3:7: error: is \\u{1b}[2J\n'));
  t.true(text.endsWith('hint: x\\u{d}y'));
});

for (const at of [0, 1, 49, 50, 51, 500, 949, 950, 998, 999, 1000]) {
  test(`a line of a thousand characters is cut around column ${at + 1}`, (t) => {
    const sourceLine = `${'a'.repeat(at)}X${'b'.repeat(1000)}`.slice(0, 1000);
    const [, line = '', caret = ''] = formatProblem({
      ...problem,
      sourceLine,
      column: at + 1,
    }).split('\n');
    t.is(line.replaceAll('...', '').length, 4 + 100);
    t.is(line.charAt(caret.length - 1), at < 1000 ? 'X' : '');
  });
}

test('a surrogate pair is never cut in two', (t) => {
  const sourceLine = '😀'.repeat(300);
  for (let column = 1; column <= 600; column++) {
    const text = formatProblem({ ...problem, sourceLine, column });
    const shown = text.split('\n')[1] ?? '';
    t.true(column % 2 === 0 || /^ {4}(?:\.\.\.)?(?:😀)+(?:\.\.\.)?$/u.test(shown), shown);
  }
});

test('a blank source line is not shown', (t) => {
  t.is(formatProblem({ ...problem, sourceLine: '  ', hint: undefined }).split('\n').length, 1);
});

test('several problems follow each other', (t) => {
  const short = { ...problem, sourceLine: undefined, hint: undefined };
  t.is(
    formatProblems([short, { ...short, severity: 'warning' }]),
    "config/a.yaml:3:7: error: unknown key 'unti'\nconfig/a.yaml:3:7: warning: unknown key 'unti'",
  );
});

const fieldsOf = (rule: ProblemRule) => {
  const details: (LogDetail | undefined)[] = [];
  const ofFile = problemOf('error', rule, 'a.yaml', 'it does not exist');
  logProblems((_, detail) => details.push(detail), [ofFile], 'the rules');
  return details[0]?.fields;
};

test('a line names the kind of its problem, if it has one', (t) => {
  t.like(fieldsOf('unreadable-file'), { file: 'a.yaml', rule: 'unreadable-file' });
  t.like(fieldsOf('other'), { file: 'a.yaml', rule: undefined });
});
