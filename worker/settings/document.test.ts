import test from 'ava';
import { choice, duration, int, text } from '../../shared/settings/kind.ts';
import { parseSettings } from '../../shared/settings/parse-settings.ts';
import { section } from '../../shared/settings/setting.ts';
import { testScenarios } from '../../test/support/scenarios.ts';
import { toHelp, toMarkdown } from './document.ts';
import { toDump } from './dump.ts';

const table = {
  store: section('Store', {
    url: text({ names: ['KV_URL', 'RE_URL'], default: '', secret: 'url', doc: 'Where it is' }),
    auth: text({ names: ['KV_AUTH'], default: '', secret: 'whole', doc: 'Password|user' }),
    type: choice({ names: ['KV_TYPE'], words: { one: 1, two: 2 }, default: 1, doc: 'Which' }),
  }),
  pool: section('Pool', {
    deep: {
      waitMs: duration({
        names: ['WAIT'],
        default: undefined,
        doc: `${'A sentence that is long enough to need more than one line. '.repeat(2)}End`,
      }),
    },
    size: int({ names: ['SIZE'], default: 10, doc: 'Size' }),
    limit: int({
      names: ['LIMIT'],
      default: 0,
      defaultText: 'none',
      doc: 'Limit',
      deprecated: 'it has no effect',
    }),
  }),
};

testScenarios(test, new URL('document.txt', import.meta.url), ([what, ...words]) => {
  if (what === 'help') return { out: `${toHelp(table)}(end)` };
  if (what === 'tables') return { out: `${toMarkdown(table)}(end)` };
  const reading = parseSettings(
    table,
    Object.fromEntries(words.map((word) => word.split(/=(.*)/s))),
  );
  const inForce = { ...reading.values, pool: { ...reading.values.pool, size: 1 } };
  const rows = toDump(table, reading, inForce);
  return { out: rows.map((row) => Object.values(row).join(' | ')).join('\n') };
});

test('a setting with the same meaning as an earlier one refers to that one', (t) => {
  const text = toMarkdown({
    first: section('First', { a: int({ names: ['A'], default: 1, doc: 'Size' }) }),
    other: section('Other', { b: int({ names: ['B'], default: 2, doc: 'Size' }) }),
  });
  t.true(text.includes('| `A` | 1 | Size |'));
  t.true(text.includes('| `B` | 2 | Like `A` |'));
});
