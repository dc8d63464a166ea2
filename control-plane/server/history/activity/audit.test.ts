import test from 'ava';
import { createLog } from '../../../../shared/log.ts';
import { createAudit } from './audit.ts';

const change = {
  who: 'ann',
  address: '10.0.0.7',
  what: 'roll back',
  requestId: 'r-1',
  before: 'a',
  after: 'b',
  outcome: 'done',
};

function lineOf(given: Partial<typeof change>, format: 'json' | 'text'): string {
  const lines: string[] = [];
  const log = createLog({ level: 'info', format, write: (line) => lines.push(line) });
  createAudit(log)({ ...change, ...given });
  return lines.join('');
}

test('each text in a line is bounded, and keeps its beginning and its end', (t) => {
  const long = `reset counters of ${'(key=value)'.repeat(240_000)}: asked by the customer`;
  for (const format of ['json', 'text'] as const) {
    for (const name of ['who', 'address', 'what', 'requestId', 'before', 'after', 'outcome']) {
      t.true(lineOf({ [name]: long }, format).length < 10_000, `${format}: ${name}`);
    }
    const line = lineOf({ what: long }, format);
    t.regex(line, /reset counters of \(key=value\)/);
    t.regex(line, /\.\.\. \(2637993 characters left out\) \.\.\. /);
    t.regex(line, /: asked by the customer/);
  }
});

test('a text of 2,048 characters is not shortened', (t) => {
  const text = `${'a'.repeat(2047)}z`;
  t.true(lineOf({ what: text }, 'json').includes(text));
});
