import test from 'ava';
import { testLines } from '../../../test/support/reviewed-lines.ts';
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

const asking = start(['10.0.0.0/8', '::1', '192.0.2.7']);

testLines(test, new URL('forwarded.txt', import.meta.url), async (given) => {
  const [peer = '', headers = ''] = given.split(/ (.*)/);
  const answer = await (await asking)(peer, JSON.parse(headers));
  return Array.isArray(answer) ? answer.map(String).join(' ') : String(answer);
});

test('the host of an absolute target goes before the header, which other servers do not send', async (t) => {
  const loadModules = () => new Map([['', { Default }]]);
  const { fetch } = await createApp({ loadModules });
  const answer = await fetch(new Request('https://shop.example:8443/'));
  t.deepEqual(await answer.json(), [null, 'https://shop.example:8443']);
});

test('the own pages of an application behind a trusted proxy are known by the host that it reports', async (t) => {
  const headers = { origin: 'https://shop.example', 'x-forwarded-host': 'shop.example' };
  const ask = await start(['10.0.0.0/8']);
  t.is(await ask('10.0.0.1', { ...headers, 'x-forwarded-for': '1.2.3.4' }, 'POST'), 'own');
  t.is(await ask('10.0.0.1', headers, 'POST'), 'own');
  t.is(await ask('1.2.3.4', headers, 'POST'), 403);
});
