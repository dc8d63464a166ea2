// Where the image's health check asks.
import test from 'ava';

interface Target {
  readonly host: string;
  readonly port: string;
  readonly isTls: boolean;
}

const {
  findTargets,
}: {
  findTargets: (
    environment: Readonly<Record<string, string>>,
    words: readonly string[],
  ) => Target[];
} = await import(new URL('../../../compose/package/healthcheck.mjs', import.meta.url).href);

const shown = ({ host, port, isTls }: Target) => `${isTls ? 'https' : 'http'} ${host} ${port}`;

test('the health check of the image asks where the program listens, by flags as by variables', (t) => {
  const serve = ['node', 'control-plane', 'serve', '--config-dir', '/rules'];
  for (const [environment, words, worker, controlPlane] of [
    [{}, serve, 'http 127.0.0.1 8080', 'http 127.0.0.1 18001'],
    [{}, [...serve, '--admin-address', ':9000'], 'http 127.0.0.1 8080', 'http 127.0.0.1 9000'],
    [{}, [...serve, '-admin-address=[::]:9000'], 'http 127.0.0.1 8080', 'http ::1 9000'],
    [{}, [...serve, '--admin-tls-cert=/c.pem'], 'http 127.0.0.1 8080', 'https 127.0.0.1 18001'],
    [
      { RATELANE_ADMIN_ADDRESS: '10.0.0.5:1', RATELANE_ADMIN_TLS_CERT: '/c.pem' },
      serve,
      'http 127.0.0.1 8080',
      'https 10.0.0.5 1',
    ],
    [
      { RATELANE_ADMIN_ADDRESS: ':1' },
      [...serve, '--admin-address', '0.0.0.0:2'],
      'http 127.0.0.1 8080',
      'http 127.0.0.1 2',
    ],
    [
      { PORT: '80', HOST: '::', HTTP_SERVER_USE_TLS: 'true' },
      ['node', 'worker'],
      'https ::1 80',
      'http 127.0.0.1 18001',
    ],
  ] as const) {
    t.deepEqual(findTargets(environment, words).map(shown), [worker, controlPlane]);
  }
});
