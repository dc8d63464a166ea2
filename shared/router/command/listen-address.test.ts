import test from 'ava';
import { parseListenAddress } from './listen-address.ts';

test('host and port may each be left out, IPv6 is in brackets', (t) => {
  t.deepEqual(parseListenAddress('0.0.0.0:80'), { host: '0.0.0.0', port: 80 });
  t.deepEqual(parseListenAddress(':0'), { host: 'localhost', port: 0 });
  t.deepEqual(parseListenAddress('example.com'), { host: 'example.com', port: 8000 });
  t.deepEqual(parseListenAddress('[::1]:8000'), { host: '::1', port: 8000 });
});

test('what is no address is refused', (t) => {
  for (const text of ['', 'a:b', 'a:65536', '::1', 'http://a:80', 'a:80/x', 'a b:80', '8000']) {
    t.is(parseListenAddress(text), undefined, text);
  }
});
