import test from 'ava';
import { bool, duration, int, map, port, text } from './kind.ts';
import { isServiceLink, parseSettings } from './parse-settings.ts';
import { section } from './setting.ts';

const table = {
  store: section('Store', {
    url: text({
      names: ['KV_URL', 'RE_URL'],
      default: '',
      secret: 'url',
      doc: 'Address',
    }),
    auth: text({ names: ['KV_AUTH', 'RE_AUTH'], default: '', secret: 'whole', doc: 'Password' }),
    timing: {
      timeoutMs: duration({
        names: ['KV_TIMEOUT', 'RE_TIMEOUT', 'timeoutOfStore'],
        default: 10_000,
        doc: 'Bound',
      }),
    },
    size: int({
      names: ['KV_SIZE', 'RE_SIZE'],
      default: 10,
      doc: 'Size',
    }),
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
    store: {
      url: '',
      auth: '',
      timing: { timeoutMs: 10_000 },
      size: 10,
      limit: 0,
      headers: {},
    },
    stats: { port: 8125, off: false },
  });
  t.deepEqual(reading.problems, []);
  t.deepEqual(reading.warnings, []);
  t.is(reading.of(table.store.settings.url).given, undefined);
});

for (const name of ['KV_TIMEOUT', 'RE_TIMEOUT', 'timeoutOfStore']) {
  test(`a setting is given under its name ${name}`, (t) => {
    const reading = parseSettings(table, { [name]: '2s' });
    t.is(reading.values.store.timing.timeoutMs, 2_000);
    t.deepEqual(reading.of(table.store.settings.timing.timeoutMs).given, { name, text: '2s' });
  });
}

test('names are compared as they are written', (t) => {
  t.is(parseSettings(table, { kv_timeout: '2s' }).values.store.timing.timeoutMs, 10_000);
});

test('two names with one value are fine, also when it is written differently', (t) => {
  const reading = parseSettings(table, { RE_TIMEOUT: '2000ms', KV_TIMEOUT: '2s' });
  t.deepEqual(reading.problems, []);
  t.is(reading.values.store.timing.timeoutMs, 2_000);
  t.is(reading.of(table.store.settings.timing.timeoutMs).given?.name, 'KV_TIMEOUT');
});

test('two names with different values are a problem that names both', (t) => {
  const reading = parseSettings(table, {
    KV_TIMEOUT: '2s',
    RE_TIMEOUT: '2s',
    timeoutOfStore: '3s',
  });
  t.deepEqual(reading.problems, [
    'KV_TIMEOUT="2s" and timeoutOfStore="3s" are two names of one setting with different values; remove one of them',
  ]);
  t.is(reading.values.store.timing.timeoutMs, 10_000);
});

test('where a setting has two names, only the one that cannot be read is reported', (t) => {
  t.deepEqual(parseSettings(table, { KV_TIMEOUT: '2s', RE_TIMEOUT: '3' }).problems, [
    'RE_TIMEOUT="3": the unit is missing (one of ns, us, ms, s, m, h); write a duration from 0s to 480h such as 10s',
  ]);
});

test('differing secrets are not shown', (t) => {
  const reading = parseSettings(table, {
    KV_AUTH: 'open',
    RE_AUTH: 'sesame',
    KV_URL: 'redis://me:open@a:1',
    RE_URL: 'redis://me:sesame@a:1',
    KV_HEADERS: 'authorization',
  });
  t.deepEqual(reading.problems, [
    'KV_URL and RE_URL are two names of one setting with different values; remove one of them',
    'KV_AUTH and RE_AUTH are two names of one setting with different values; remove one of them',
    'KV_HEADERS="*****": item 1 does not have exactly one ":"; write comma-separated key:value items such as a:b',
  ]);
});

test('all problems are reported at once, in the order of the table', (t) => {
  t.deepEqual(
    parseSettings(table, { NO_STATS: 'maybe', PUSH_PORT: '70000', KV_SIZE: '' }).problems,
    [
      'KV_SIZE="": empty; write a whole number such as 10',
      'PUSH_PORT="70000": out of range; write a port from 0 to 65535 such as 8125',
      'NO_STATS="maybe": not a boolean; write true or false',
    ],
  );
});

test('a long value is cut and its control characters are escaped in a message', (t) => {
  t.deepEqual(parseSettings(table, { NO_STATS: `\n\u001b${'x'.repeat(5_000)}` }).problems, [
    `NO_STATS="\\n\\u001b${'x'.repeat(98)}...": not a boolean; write true or false`,
  ]);
});

test('a setting without effect is reported only when it differs from its default', (t) => {
  t.deepEqual(parseSettings(table, { RE_SIZE: '20', KV_LIMIT: '5' }).warnings, [
    'KV_LIMIT="5" is deprecated: it has no effect',
  ]);
  t.deepEqual(parseSettings(table, { RE_SIZE: '10', KV_LIMIT: '0x0' }).warnings, []);
});

test('a port that Kubernetes made for a service of that name counts as not given', (t) => {
  const reading = parseSettings(table, { STATSD_PORT: 'tcp://10.3.0.7:8125', PUSH_PORT: '9' });
  t.deepEqual(reading.problems, []);
  t.is(reading.values.stats.port, 9);
});

const links: [string, string][] = [
  ['REDIS_SERVICE_HOST', '10.0.0.1'],
  ['REDIS_SERVICE_PORT', '6379'],
  ['REDIS_SERVICE_PORT_CLIENT', '6379'],
  ['REDIS_PORT', 'tcp://10.0.0.1:6379'],
  ['REDIS_PORT', 'udp://[fd00::1]:6379'],
  ['REDIS_PORT_6379_TCP', 'tcp://10.0.0.1:6379'],
  ['REDIS_PORT_6379_TCP_PROTO', 'tcp'],
  ['REDIS_PORT_6379_TCP_PORT', '6379'],
  ['REDIS_PORT_6379_TCP_ADDR', '10.0.0.1'],
];
for (const [name, value] of links) {
  test(`${name}=${value} points to a service`, (t) => {
    t.true(isServiceLink(name, value));
  });
}

test('a port that a person wrote does not point to a service', (t) => {
  t.false(isServiceLink('REDIS_PORT', '6379'));
  t.false(isServiceLink('REDIS_PORT', 'tcp://redis:6379'));
  t.deepEqual(parseSettings(table, { PUSH_PORT: 'tcp://redis:6379' }).problems, [
    'PUSH_PORT="tcp://redis:6379": not a whole number; write a port from 0 to 65535 such as 8125',
  ]);
});

test('a row that is not in the table is a defect of the program', (t) => {
  const reading = parseSettings(table, {});
  const other = bool({ names: ['OTHER', 'ELSE'], default: false, doc: '' });
  t.throws(() => reading.of(other), { message: 'OTHER/ELSE is not in the table' });
});
