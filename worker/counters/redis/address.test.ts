// Tests how addresses of stores are parsed, as reviewed lines: address.txt. `REWRITE=1` rewrites them.
import test from 'ava';
import fc from 'fast-check';
import { testLines } from '../../../test/support/reviewed-lines.ts';
import { parseStoreTarget, type StoreTarget, showStoreAddress } from './address.ts';

function show({ tls, credentials, database, address }: StoreTarget): string {
  const targets =
    address.kind === 'sentinel' || address.kind === 'cluster' ? address.addresses : [address];
  const each = targets.map((target) =>
    target.kind === 'unix' ? `socket ${target.path}` : `host ${target.host} port ${target.port}`,
  );
  return [
    `${address.kind}${address.kind === 'sentinel' ? ` ${address.master}` : ''} at ${each.join(' and ')}`,
    tls ? 'TLS' : [],
    credentials
      ? `user ${credentials.username ?? 'by default'}, password ${credentials.password}`
      : [],
    database === 0 ? [] : `database ${database}`,
  ]
    .flat()
    .join(', ');
}

/**
 * `[(sentinel|cluster)|(tcp|unix)] ADDRESS`: a type of store with its address, or a single server's type of socket with
 * its address.
 */
testLines(test, new URL('address.txt', import.meta.url), (given) => {
  const [, word, text = ''] = /^(?:\((\w+)\) )?(.*)$/.exec(given) ?? [];
  const result =
    word === 'sentinel' || word === 'cluster'
      ? parseStoreTarget(text, word, undefined)
      : parseStoreTarget(text, 'single', word as 'tcp' | 'unix' | undefined);
  return result.ok ? show(result.value) : `refused: ${result.reason}`;
});

test('an address is shown without the credentials that came with it', (t) => {
  const shown = ['redis://me:secret@h:1/3', '[::1]:6379', '/run/redis.sock'].map((text) => {
    const result = parseStoreTarget(text, 'single', undefined);
    return result.ok && showStoreAddress(result.value.address);
  });
  t.deepEqual(shown, ['h:1', '[::1]:6379', '/run/redis.sock']);
});

test('no address makes the parser throw', (t) => {
  const likely = fc.string({ unit: fc.constantFrom(...'redis:/@[]%?&=,0123456789 .') });
  const prefixed = fc.oneof(likely, fc.string()).map((rest) => `redis://${rest}`);
  const socketTypes = fc.constantFrom('tcp', 'unix', undefined);
  const texts = fc.oneof(likely, prefixed, fc.string());
  const types = fc.constantFrom('single', 'sentinel', 'cluster');
  fc.assert(
    fc.property(texts, types, socketTypes, (text, type, socketType) => {
      const result = parseStoreTarget(text, type, socketType);
      t.true(result.ok ? result.value.database >= 0 : result.reason !== '');
    }),
  );
});
