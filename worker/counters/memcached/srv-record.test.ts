import test from 'ava';
import { isSrvName, resolveNodes } from './srv-record.ts';

for (const name of ['_memcache._tcp.example.com', '_a-b._udp.x', '_a.b._tcp.x.']) {
  test(`${name} is the name of a record`, (t) => {
    t.true(isSrvName(name));
  });
}
for (const name of ['', 'example.com', '_memcache.example.com', '_memcache._tcp', '_._tcp.x']) {
  test(`"${name}" is not the name of a record`, (t) => {
    t.false(isSrvName(name));
  });
}

test('nodes are sorted as texts with the final dot of their targets', async (t) => {
  const records = [
    { name: 'b.example', port: 9 },
    { name: 'b.example', port: 10 },
    { name: 'a.b.c', port: 1 },
    { name: 'a.b', port: 2 },
    { name: 'a.b-c', port: 3 },
  ];
  const nodes = await resolveNodes('_m._tcp.x', () => Promise.resolve(records));
  t.deepEqual(
    nodes.map(({ host, port }) => `${host}:${port}`),
    ['a.b-c:3', 'a.b:2', 'a.b.c:1', 'b.example:10', 'b.example:9'],
  );
});

test('a record without nodes is a failure', async (t) => {
  await t.throwsAsync(
    resolveNodes('_m._tcp.x', () => Promise.resolve([])),
    { message: 'the record lists no node' },
  );
});
