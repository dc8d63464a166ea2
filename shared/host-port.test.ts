import test from 'ava';
import { isLoopback, parseHostPort } from './host-port.ts';

const read: [string, { host: string; port: number }][] = [
  ['localhost:6379', { host: 'localhost', port: 6379 }],
  [':9090', { host: '', port: 9090 }],
  ['10.0.0.1:0', { host: '10.0.0.1', port: 0 }],
  ['[::1]:6379', { host: '::1', port: 6379 }],
  ['a-b.c_d:65535', { host: 'a-b.c_d', port: 65535 }],
];
for (const [text, value] of read) {
  test(`${text} is a host and a port`, (t) => {
    t.deepEqual(parseHostPort(text, 0), { ok: true, value });
  });
}

const refused: [string, string][] = [
  ['localhost', 'the port is missing'],
  ['localhost:', 'the port is missing'],
  ['', 'the port is missing'],
  ['localhost:redis', 'the port is not a number from 1 to 65535'],
  ['localhost:0', 'the port is not a number from 1 to 65535'],
  ['localhost:65536', 'the port is not a number from 1 to 65535'],
  ['localhost:0x10', 'the port is not a number from 1 to 65535'],
  ['localhost: 1', 'the port is not a number from 1 to 65535'],
  ['a:1,b:2', 'the port is not a number from 1 to 65535'],
  ['::1', 'the port is not a number from 1 to 65535'],
  ['[::1', 'an IPv6 address needs brackets'],
  ['[::1]6379', 'an IPv6 address needs brackets'],
  ['my host:1', 'the host has an invalid character'],
  ['http//x:1', 'the host has an invalid character'],
  ['pass@host:1', 'the host has an invalid character'],
];
for (const [text, reason] of refused) {
  test(`${JSON.stringify(text)} is no host and port: ${reason}`, (t) => {
    t.deepEqual(parseHostPort(text, 1), { ok: false, reason });
  });
}

for (const host of [
  'localhost',
  'LOCALHOST',
  '127.0.0.1',
  '127.9.9.9',
  '::1',
  '::ffff:127.0.0.1',
]) {
  test(`only this machine can reach ${host}`, (t) => t.true(isLoopback(host)));
}

for (const host of [
  '',
  '0.0.0.0',
  '::',
  '10.0.0.1',
  '128.0.0.1',
  'localhost.example',
  '127.0.0.1.example',
  '::ffff:10.0.0.1',
]) {
  test(`other machines may reach "${host}"`, (t) => t.false(isLoopback(host)));
}
