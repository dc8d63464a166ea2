import test from 'ava';
import { toHelp, toMarkdown } from './document.ts';
import { toDump } from './dump.ts';
import { choice, duration, int, text } from './kind.ts';
import { parseSettings } from './parse-settings.ts';
import { section } from './setting.ts';

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

test('the help has every setting with its names, meaning and default', (t) => {
  t.is(
    toHelp(table),
    `Store

  KV_URL, RE_URL
      Where it is [unset]

  KV_AUTH
      Password|user [unset]

  KV_TYPE
      Which: one or two [one]

Pool

  WAIT
      A sentence that is long enough to need more than one line. A sentence that is long enough
      to need more than one line. End [unset]

  SIZE
      Size [10]

  LIMIT
      Limit. Deprecated: it has no effect [none]
`,
  );
});

const markdown = `## Store

| Name | Default | Meaning |
|---|---|---|
| \`KV_URL\`, \`RE_URL\` | unset | Where it is |
| \`KV_AUTH\` | unset | Password\\|user |
| \`KV_TYPE\` | one | Which: one or two |

## Pool

| Name | Default | Meaning |
|---|---|---|
| \`WAIT\` | unset | A sentence that is long enough to need more than one line. A sentence that is long enough to need more than one line. End |
| \`SIZE\` | 10 | Size |
| \`LIMIT\` | none | Limit. Deprecated: it has no effect |`;

test('the tables have a row per setting under its heading, and a list leads there', (t) => {
  t.is(toMarkdown(table), markdown);
});

test('the dump has the value in force and its origin, without secrets', (t) => {
  const reading = parseSettings(table, {
    RE_URL: 'redis://me:open@h:1',
    KV_AUTH: 'sesame',
    WAIT: '90s',
  });
  const inForce = { ...reading.values, pool: { ...reading.values.pool, size: 1 } };
  t.deepEqual(toDump(table, reading, inForce), [
    { section: 'Store', name: 'KV_URL', value: 'redis://*****@h:1', from: 'RE_URL' },
    { section: 'Store', name: 'KV_AUTH', value: '*****', from: 'KV_AUTH' },
    { section: 'Store', name: 'KV_TYPE', value: 'one', from: 'default' },
    { section: 'Pool', name: 'WAIT', value: '1m30s', from: 'WAIT' },
    { section: 'Pool', name: 'SIZE', value: '1', from: 'default' },
    { section: 'Pool', name: 'LIMIT', value: '0', from: 'default' },
  ]);
});

test('a setting with the meaning of one before it refers to that one', (t) => {
  const text = toMarkdown({
    first: section('First', { a: int({ names: ['A'], default: 1, doc: 'Size' }) }),
    other: section('Other', { b: int({ names: ['B'], default: 2, doc: 'Size' }) }),
  });
  t.true(text.includes('| `A` | 1 | Size |'));
  t.true(text.includes('| `B` | 2 | As `A` |'));
});
