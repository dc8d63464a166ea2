import test from 'ava';
import { testLines } from '../../test/support/reviewed-lines.ts';
import { bool, duration, int, map, port, text } from './kind.ts';
import { isServiceLink, parseSettings } from './parse-settings.ts';
import { section } from './setting.ts';

const table = {
  store: section('Store', {
    url: text({ names: ['KV_URL', 'RE_URL'], default: '', secret: 'url', doc: 'Address' }),
    auth: text({ names: ['KV_AUTH', 'RE_AUTH'], default: '', secret: 'whole', doc: 'Password' }),
    timing: {
      timeoutMs: duration({
        names: ['KV_TIMEOUT', 'RE_TIMEOUT', 'timeoutOfStore'],
        default: 10_000,
        doc: 'Bound',
      }),
    },
    size: int({ names: ['KV_SIZE', 'RE_SIZE'], default: 10, doc: 'Size' }),
    limit: int({ names: ['KV_LIMIT'], default: 0, doc: 'Limit', deprecated: 'it has no effect' }),
    headers: map({ names: ['KV_HEADERS'], example: 'a:b', secret: 'whole', doc: 'Headers' }),
  }),
  stats: section('Statistics', {
    port: port({ names: ['PUSH_PORT', 'STATSD_PORT'], default: 8125, doc: 'Port' }),
    off: bool({ names: ['NO_STATS'], default: false, doc: 'Off' }),
  }),
};

test('a setting that is not given has its default', (t) => {
  const reading = parseSettings(table, { PATH: '/bin', RE_URL: undefined });
  t.deepEqual(reading.values, {
    store: { url: '', auth: '', timing: { timeoutMs: 10_000 }, size: 10, limit: 0, headers: {} },
    stats: { port: 8125, off: false },
  });
  t.deepEqual(reading.problems, []);
  t.deepEqual(reading.warnings, []);
  t.is(reading.of(table.store.settings.url).given, undefined);
});

testLines(test, new URL('parse-settings.txt', import.meta.url), (given) => {
  const pairs = given.split(' ').map((pair) => pair.split(/=(.*)/, 2));
  const reading = parseSettings(table, Object.fromEntries(pairs));
  const { store, stats } = reading.values;
  const by = reading.of(table.store.settings.timing.timeoutMs).given;
  return [
    ...reading.problems,
    ...reading.warnings.map((warning) => `warning: ${warning}`),
    `${store.timing.timeoutMs} ms${by ? ` by ${by.name}=${by.text}` : ''}, size ${store.size}, port ${stats.port}`,
  ].join('; ');
});

testLines(test, new URL('service-links.txt', import.meta.url), (given) => {
  const [name = '', value = ''] = given.split(/=(.*)/, 2);
  return isServiceLink(name, value) ? 'points to a service' : 'does not';
});

test('a long value is cut and its control characters are escaped in a message', (t) => {
  t.deepEqual(parseSettings(table, { NO_STATS: `\n\u001b${'x'.repeat(5_000)}` }).problems, [
    `NO_STATS="\\n\\u001b${'x'.repeat(98)}...": not a boolean; write true or false`,
  ]);
});

test('a row that is not in the table is a defect of the program', (t) => {
  const reading = parseSettings(table, {});
  const other = bool({ names: ['OTHER', 'ELSE'], default: false, doc: '' });
  t.throws(() => reading.of(other), { message: 'OTHER/ELSE is not in the table' });
});
