import test from 'ava';
import fc from 'fast-check';
import { parseStoreTarget, type StoreTarget, showStoreAddress } from './address.ts';

const plain = { tls: false, credentials: undefined, database: 0 };
const tcp = (host: string, port: number) => ({ kind: 'tcp', host, port }) as const;
const unix = (path: string) => ({ kind: 'unix', path }) as const;

const read: [string, 'tcp' | 'unix' | undefined, StoreTarget][] = [
  ['localhost:6379', undefined, { ...plain, address: tcp('localhost', 6379) }],
  ['localhost:6379', 'tcp', { ...plain, address: tcp('localhost', 6379) }],
  [':6379', 'tcp', { ...plain, address: tcp('localhost', 6379) }],
  ['[::1]:6379', undefined, { ...plain, address: tcp('::1', 6379) }],
  ['/run/redis.sock', undefined, { ...plain, address: unix('/run/redis.sock') }],
  ['/run/redis.sock', 'unix', { ...plain, address: unix('/run/redis.sock') }],
  ['unix:/run/redis.sock', undefined, { ...plain, address: unix('/run/redis.sock') }],
  ['unix:///run/redis.sock', undefined, { ...plain, address: unix('/run/redis.sock') }],
  ['redis.sock', 'unix', { ...plain, address: unix('redis.sock') }],
  ['redis://h', undefined, { ...plain, address: tcp('h', 6379) }],
  ['redis://h:1/', 'tcp', { ...plain, address: tcp('h', 1) }],
  ['redis://[::1]:1', undefined, { ...plain, address: tcp('::1', 1) }],
  ['REDIS://h:1', undefined, { ...plain, address: tcp('h', 1) }],
  ['rediss://h:1', undefined, { ...plain, tls: true, address: tcp('h', 1) }],
  [
    'redis://me:p%40ss@h:1/3',
    undefined,
    {
      ...plain,
      address: tcp('h', 1),
      credentials: { username: 'me', password: 'p@ss' },
      database: 3,
    },
  ],
  [
    'redis://:50%@h:1?db=4',
    undefined,
    {
      ...plain,
      address: tcp('h', 1),
      credentials: { username: undefined, password: '50%' },
      database: 4,
    },
  ],
  [
    'redis://:100%:%40b@h:1',
    undefined,
    {
      ...plain,
      address: tcp('h', 1),
      credentials: { username: undefined, password: '100%:@b' },
    },
  ],
  [
    'redis://h:1?username=me&password=pass',
    undefined,
    {
      ...plain,
      address: tcp('h', 1),
      credentials: { username: 'me', password: 'pass' },
      database: 0,
    },
  ],
];
for (const [text, socketType, value] of read) {
  test(`${text} (${socketType ?? 'any'}) leads to a store`, (t) => {
    t.deepEqual(parseStoreTarget(text, 'single', socketType), { ok: true, value });
  });
}

const refused: [string, 'tcp' | 'unix' | undefined, string][] = [
  ['localhost', undefined, 'the port is missing'],
  ['a:1,b:x', undefined, 'the port is not a number from 1 to 65535'],
  ['localhost:6379', 'unix', 'this is not the path of a unix socket'],
  ['redis://h:1', 'unix', 'this is not the path of a unix socket'],
  ['/run/redis.sock', 'tcp', 'this is the path of a unix socket'],
  ['unix:', undefined, 'the path is missing'],
  ['http://h:1', undefined, 'the address begins with an unknown scheme'],
  ['redis://h:99999', undefined, 'this is not a valid URL'],
  ['redis://h:0', undefined, 'the port is not a number from 1 to 65535'],
  ['redis://h:1/x', undefined, 'the database is not a number'],
  ['redis://me@h:1', undefined, 'the password is missing'],
];
for (const [text, socketType, reason] of refused) {
  test(`${text} (${socketType ?? 'any'}) leads to no store: ${reason}`, (t) => {
    t.deepEqual(parseStoreTarget(text, 'single', socketType), { ok: false, reason });
  });
}

const groups: [string, 'sentinel' | 'cluster', StoreTarget | string][] = [
  [
    'main,a:1,[::1]:2',
    'sentinel',
    {
      ...plain,
      address: { kind: 'sentinel', master: 'main', addresses: [tcp('a', 1), tcp('::1', 2)] },
    },
  ],
  ['a:1', 'cluster', { ...plain, address: { kind: 'cluster', addresses: [tcp('a', 1)] } }],
  [
    'redis://a:1,rediss://b:2',
    'cluster',
    { ...plain, tls: true, address: { kind: 'cluster', addresses: [tcp('a', 1), tcp('b', 2)] } },
  ],
  ['main', 'sentinel', 'sentinels need the name of the master and at least one address'],
  [',a:1', 'sentinel', 'sentinels need the name of the master and at least one address'],
  ['main,a:1,b', 'sentinel', 'address 2: the port is missing'],
  ['a:1,', 'cluster', 'address 2: the port is missing'],
  ['redis://:x@a:1', 'cluster', 'address 1: credentials have a setting of their own'],
  ['redis://a:1/3', 'cluster', 'address 1: a database cannot be chosen'],
  ['/run/redis.sock', 'cluster', 'address 1: the host has a character that hosts do not have'],
];
for (const [text, type, expected] of groups) {
  test(`${text} (${type}) is read as a list`, (t) => {
    const result = parseStoreTarget(text, type, undefined);
    t.deepEqual(result.ok ? result.value : result.reason, expected);
  });
}

test('an address is shown without the credentials that came with it', (t) => {
  const shown = ['redis://me:secret@h:1/3', '[::1]:6379', '/run/redis.sock'].map((text) => {
    const result = parseStoreTarget(text, 'single', undefined);
    return result.ok && showStoreAddress(result.value.address);
  });
  t.deepEqual(shown, ['h:1', '[::1]:6379', '/run/redis.sock']);
});

test('no address makes the reader throw', (t) => {
  const likely = fc.string({ unit: fc.constantFrom(...'redis:/@[]%?&=,0123456789 .') });
  const prefixed = fc.oneof(likely, fc.string()).map((rest) => `redis://${rest}`);
  const socketTypes = fc.constantFrom('tcp', 'unix', undefined);
  const texts = fc.oneof(likely, prefixed, fc.string());
  const types = fc.constantFrom('single', 'sentinel', 'cluster');
  fc.assert(
    fc.property(texts, types, socketTypes, (text, type, socketType) => {
      const result = parseStoreTarget(text, type, socketType);
      t.true(result.ok ? result.value.database >= 0 : result.reason !== '');
    }),
  );
});
