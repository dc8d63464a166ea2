import test from 'ava';
import { createTapReader, type TapFailure } from './tap-reader.ts';

function read(text: string): {
  reader: ReturnType<typeof createTapReader>;
  failures: TapFailure[];
} {
  const failures: TapFailure[] = [];
  const reader = createTapReader((failure) => failures.push(failure));
  for (const line of text.split('\n')) reader.readLine(line);
  reader.end();
  return { reader, failures };
}

test('passed and failed tests are counted, each failure with its details', (t) => {
  const { reader, failures } = read(
    [
      'TAP version 13',
      'ok 1 - a › works',
      'not ok 2 - a › breaks # not a directive',
      '  ---',
      '    message: boom',
      '  ...',
      'ok 3 - a › works too',
      '1..3',
      '# tests 3',
    ].join('\n'),
  );
  t.like(reader, { passed: 2, failed: 1 });
  t.true(reader.complete);
  t.deepEqual(failures, [
    { title: 'a › breaks # not a directive', details: ['  ---', '    message: boom', '  ...'] },
  ]);
});

test('a test that did not run is neither passed nor failed', (t) => {
  const { reader } = read('ok 1 - a › later # SKIP\nnot ok 2 - a › idea # TODO\n1..2');
  t.is(reader.passed + reader.failed, 0);
  t.deepEqual(reader.skipped, ['a › later (skip)', 'a › idea (todo)']);
});

test('output that breaks off keeps its counts and is not complete', (t) => {
  const { reader, failures } = read('ok 1 - a › works\nnot ok 2 - a › breaks\n  ---');
  t.like(reader, { passed: 1, failed: 1 });
  t.false(reader.complete);
  t.is(failures.length, 1);
});
