import test from 'ava';
import { parseRedisAddress } from './address.ts';

function parse(text: string, socketType: 'tcp' | 'unix' = 'tcp') {
  const parsed = parseRedisAddress(socketType, text);
  if (!parsed.ok) return parsed.problem;
  const { target, username, password, database, masked } = parsed.address;
  return [target, username, password, database, masked];
}

test('host and port, also of IPv6 and without a host', (t) => {
  t.deepEqual(parse('redis.local:6380'), [
    { host: 'redis.local', port: 6380 },
    '',
    '',
    0,
    'redis.local:6380',
  ]);
  t.deepEqual(parse('[::1]:6379'), [{ host: '::1', port: 6379 }, '', '', 0, '[::1]:6379']);
  t.deepEqual(parse(':6379'), [{ host: 'localhost', port: 6379 }, '', '', 0, ':6379']);
});

test('the path of a unix socket', (t) => {
  t.deepEqual(parse('/run/redis.sock', 'unix'), [
    { path: '/run/redis.sock' },
    '',
    '',
    0,
    '/run/redis.sock',
  ]);
});

test('a redis:// URL with credentials and database, which are not shown', (t) => {
  t.deepEqual(parse('redis://robin:p%40ss@redis:7000/4'), [
    { host: 'redis', port: 7000 },
    'robin',
    'p@ss',
    4,
    'redis://*****@redis:7000/4',
  ]);
  t.deepEqual(parse('redis://:pass@[::1]'), [
    { host: '::1', port: 6379 },
    '',
    'pass',
    0,
    'redis://*****@[::1]',
  ]);
  t.deepEqual(parse('redis://redis:7000?username=robin&password=secret&db=2'), [
    { host: 'redis', port: 7000 },
    'robin',
    'secret',
    2,
    'redis://redis:7000?*****',
  ]);
});

test('what is none of these is a problem that shows no credentials', (t) => {
  t.is(parse(''), 'the address is empty');
  t.is(parse('redis'), '"redis" is not host:port');
  t.is(parse('redis:0'), '"redis:0" is not host:port');
  t.is(parse('redis:66000'), '"redis:66000" is not host:port');
  t.is(parse('user:pass@redis:6379'), '"*****@redis:6379" is not host:port');
  t.is(parse('redis://redis:70000'), '"redis://redis:70000" is not a redis:// URL');
  t.is(
    parse('redis://redis:7000/one'),
    '"one" in "redis://redis:7000/one" is not a database number',
  );
  t.is(
    parse('redis://a:%zz@redis:7000'),
    'the credentials in "redis://*****@redis:7000" are not percent-encoded',
  );
  t.regex(String(parse('rediss://redis:7000')), /TLS/);
});
