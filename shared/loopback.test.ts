import test from 'ava';
import { isLoopback } from './loopback.ts';

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
