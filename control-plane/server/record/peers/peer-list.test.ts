import test from 'ava';
import { parsePeers } from './peer-list.ts';

test('peers are addresses of admin APIs, and names that stand for several', (t) => {
  t.deepEqual(parsePeers('http://b:18001, https://c:18001/base,dns:control-planes.svc:18001'), {
    ok: true,
    peers: [
      { kind: 'url', url: new URL('http://b:18001') },
      { kind: 'url', url: new URL('https://c:18001/base') },
      { kind: 'dns', host: 'control-planes.svc', port: 18001 },
    ],
  });
});

for (const text of [
  '',
  'b:18001',
  'http://user:secret@b:18001',
  'ftp://b',
  'http://b?x=1',
  'dns:b',
  'dns::18001',
  'dns:b:0',
  'http://b,',
  Array.from({ length: 33 }, () => 'http://b').join(),
]) {
  test(`refused: ${text.slice(0, 40)}`, (t) => {
    const result = parsePeers(text);
    t.false(result.ok);
    t.false(JSON.stringify(result).includes('secret'));
  });
}

test('a peer that cannot be parsed is refused with the form of one, and 32 peers are taken', (t) => {
  t.deepEqual(parsePeers('dns:b'), {
    ok: false,
    reason: "'dns:' is followed by a name and a port, such as dns:control-planes:18001",
  });
  t.true(parsePeers(Array.from({ length: 32 }, () => 'http://b').join()).ok);
});
