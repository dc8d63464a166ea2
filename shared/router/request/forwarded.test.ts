import test from 'ava';
import { createApp } from '../app.ts';
import { Controller } from '../controller.ts';
import { fromOrigins } from '../guard.ts';

class Default extends Controller {
  GET() {
    return [this.request.remoteAddress, this.request.origin];
  }
}
class Own extends Controller {
  static override readonly guard = fromOrigins([]);
  POST() {
    return 'own';
  }
}

async function start(trustedProxies: readonly string[]) {
  const loadModules = () => new Map([['', { Default, Own }]]);
  const { dispatch } = await createApp({ loadModules, trustedProxies, reportError() {} });
  return async (remoteAddress: string, headers: Record<string, string>, method = 'GET') => {
    const { status, body } = await dispatch({
      method,
      target: method === 'GET' ? '/' : '/own',
      headers: new Headers({ host: 'inside:8080', ...headers }),
      body: undefined,
      remoteAddress,
    });
    return status === 200 ? (JSON.parse(String(body)) as unknown) : status;
  };
}

test('the client is the first address before the trusted proxies, whatever it has sent itself', async (t) => {
  const ask = await start(['10.0.0.0/8', '::1', '192.0.2.7']);
  for (const [peer, headers, client, origin] of [
    ['10.1.2.3', {}, '10.1.2.3', 'http://inside:8080'],
    ['10.1.2.3', { 'x-forwarded-for': '198.51.100.1' }, '198.51.100.1', 'http://inside:8080'],
    [
      '10.1.2.3',
      { 'x-forwarded-for': '6.6.6.6, 198.51.100.1, 10.9.9.9' },
      '198.51.100.1',
      'http://inside:8080',
    ],
    [
      '::ffff:10.1.2.3',
      { 'x-forwarded-for': '198.51.100.1:4711' },
      '198.51.100.1',
      'http://inside:8080',
    ],
    ['10.1.2.3', { 'x-forwarded-for': '10.0.0.1, 10.0.0.2' }, '10.0.0.1', 'http://inside:8080'],
    [
      '203.0.113.9',
      {
        'x-forwarded-for': '198.51.100.1',
        'x-forwarded-host': 'evil',
        'x-forwarded-proto': 'https',
      },
      '203.0.113.9',
      'http://inside:8080',
    ],
    [
      '::1',
      {
        'x-forwarded-for': '198.51.100.1',
        'x-forwarded-host': 'shop.example',
        'x-forwarded-proto': 'https',
      },
      '198.51.100.1',
      'https://shop.example',
    ],
    [
      '10.1.2.3',
      {
        forwarded:
          'for=6.6.6.6;host=evil, for="[2001:db8::1]:4711";proto=https;host="shop.example:8443", for=192.0.2.7',
      },
      '2001:db8::1',
      'https://shop.example:8443',
    ],
    ['10.1.2.3', { forwarded: 'for=unknown' }, null, 'http://inside:8080'],
    [
      '10.1.2.3',
      { forwarded: 'for=198.51.100.1;proto=gopher;host="a/b"' },
      '198.51.100.1',
      'http://inside:8080',
    ],
    [
      '10.1.2.3',
      { forwarded: 'for=198.51.100.1', 'x-forwarded-for': '6.6.6.6' },
      '198.51.100.1',
      'http://inside:8080',
    ],
  ] as const) {
    t.deepEqual(await ask(peer, headers), [client, origin], JSON.stringify(headers));
  }
});

test('the own pages of an application behind a trusted proxy are known by the host that it reports', async (t) => {
  const headers = { origin: 'https://shop.example', 'x-forwarded-host': 'shop.example' };
  const ask = await start(['10.0.0.0/8']);
  t.is(await ask('10.0.0.1', { ...headers, 'x-forwarded-for': '1.2.3.4' }, 'POST'), 'own');
  t.is(await ask('10.0.0.1', headers, 'POST'), 'own');
  t.is(await ask('1.2.3.4', headers, 'POST'), 403);
});

test('what is no network keeps the application from starting', async (t) => {
  for (const wrong of ['10.0.0.0/33', 'proxy.example', '10.0.0.0/8/9', '', '::1/a']) {
    await t.throwsAsync(start([wrong]), { message: /is no address and no network/ }, wrong);
  }
});
