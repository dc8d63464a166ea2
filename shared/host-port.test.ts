// Tests how hosts with ports are parsed, as reviewed lines: host-port.txt. `REWRITE=1` rewrites them.
import test from 'ava';
import { testLines } from '../test/support/reviewed-lines.ts';
import { isLoopback, parseHostPort } from './host-port.ts';

/** `(LOWEST PORT) "TEXT"`. */
testLines(test, new URL('host-port.txt', import.meta.url), (given) => {
  const [lowest = '', text = ''] = given.split(/(?<=^\(\d\)) /);
  const parsed = parseHostPort(JSON.parse(text), lowest[1] === '0' ? 0 : 1);
  return parsed.ok ? `host '${parsed.value.host}', port ${parsed.value.port}` : parsed.reason;
});

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
