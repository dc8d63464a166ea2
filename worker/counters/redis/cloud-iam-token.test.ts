// Tests tokens against a signature computed here step by step, and their reuse on a clock that is advanced by hand.
import { createHash, createHmac } from 'node:crypto';
import test from 'ava';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import {
  type CloudCredentials,
  type CloudIamOptions,
  createCloudIamCredentials,
  loadOptional,
  signToken,
} from './cloud-iam-token.ts';

const options: CloudIamOptions = {
  cacheName: 'Orders-Cache',
  userId: 'limits (eu)',
  serverless: false,
  region: 'eu-west-1',
};
const credentials: CloudCredentials = {
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
};
const date = new Date('2026-03-04T05:06:07.890Z');

/** Signature Version 4 of a presigned GET, computed as AWS documents it. */
function signByHand(items: readonly [string, string][], { secretAccessKey }: CloudCredentials) {
  const day = '20260304';
  const moment = '20260304T050607Z';
  const scope = `${day}/eu-west-1/elasticache/aws4_request`;
  const toQueryText = (text: string) =>
    [...Buffer.from(text)]
      .map((byte) => {
        const character = String.fromCharCode(byte);
        const hex = byte.toString(16).toUpperCase().padStart(2, '0');
        return /[A-Za-z0-9._~-]/.test(character) ? character : `%${hex}`;
      })
      .join('');
  const query = items
    .map(([name, value]) => `${toQueryText(name)}=${toQueryText(value)}`)
    .sort()
    .join('&');
  const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
  const canonical = ['GET', '/', query, 'host:orders-cache', '', 'host', sha256('')].join('\n');
  const toSign = ['AWS4-HMAC-SHA256', moment, scope, sha256(canonical)].join('\n');
  const key = [day, 'eu-west-1', 'elasticache', 'aws4_request'].reduce<string | Buffer>(
    (secret, part) => createHmac('sha256', secret).update(part).digest(),
    `AWS4${secretAccessKey}`,
  );
  return createHmac('sha256', key).update(toSign).digest('hex');
}

const variants: [string, Partial<CloudIamOptions>, Partial<CloudCredentials>][] = [
  ['a node-based cache', {}, {}],
  ['a serverless cache', { serverless: true }, {}],
  ['temporary credentials', {}, { sessionToken: 'session/+=token' }],
];
for (const [what, moreOptions, moreCredentials] of variants) {
  test(`the token of ${what} is the presigned URL without its scheme`, async (t) => {
    const signing = { ...credentials, ...moreCredentials };
    const token = await signToken({ ...options, ...moreOptions }, signing, date);
    t.true(token.startsWith('orders-cache/?'), token);
    const items = [...new URLSearchParams(token.slice(token.indexOf('?') + 1))];
    const signature = items.find(([name]) => name === 'X-Amz-Signature')?.[1];
    const signed = items.filter(([name]) => name !== 'X-Amz-Signature');
    t.deepEqual(Object.fromEntries(signed), {
      Action: 'connect',
      User: 'limits (eu)',
      ...(moreOptions.serverless && { ResourceType: 'ServerlessCache' }),
      'X-Amz-Algorithm': 'AWS4-HMAC-SHA256',
      'X-Amz-Credential': 'AKIDEXAMPLE/20260304/eu-west-1/elasticache/aws4_request',
      'X-Amz-Date': '20260304T050607Z',
      'X-Amz-Expires': '900',
      'X-Amz-SignedHeaders': 'host',
      ...(signing.sessionToken && { 'X-Amz-Security-Token': signing.sessionToken }),
    });
    t.is(signature, signByHand(signed, signing));
    t.true(token.includes('User=limits%20%28eu%29'), token);
  });
}

function setUp(expiresInMs?: number) {
  const clock = createManualClock(date.getTime());
  let asked = 0;
  const read = createCloudIamCredentials(options, {
    clock,
    readRegion: async () => options.region,
    readCloudCredentials: async () => {
      asked++;
      const expiration =
        expiresInMs === undefined ? undefined : new Date(clock.wallMs() + expiresInMs);
      return { ...credentials, expiration };
    },
  });
  return { clock, read, asked: () => asked };
}

test('a token is shared for ten minutes, then a new one is made', async (t) => {
  const { clock, read, asked } = setUp();
  const [first, same] = await Promise.all([read(), read()]);
  t.is(first?.username, 'limits (eu)');
  t.is(same?.password, first?.password);
  clock.advance(599_000);
  t.is((await read())?.password, first?.password);
  t.is(asked(), 1);
  clock.advance(1_000);
  t.not((await read())?.password, first?.password);
  t.is(asked(), 2);
  clock.setWall(clock.wallMs() - 3_600_000);
  await read();
  t.is(asked(), 3, 'one that the clock, set back, has signed later');
  clock.advance(540_000);
  clock.setWall(clock.wallMs() - 300_000);
  clock.advance(60_000);
  await read();
  t.is(asked(), 4, 'one that is older than the clock has it');
});

test('a token is no longer used from a minute before its credentials expire', async (t) => {
  const { clock, read, asked } = setUp(300_000);
  await read();
  clock.advance(239_000);
  await read();
  t.is(asked(), 1);
  clock.advance(1_000);
  await read();
  t.is(asked(), 2);
});

test('without credentials the attempt fails with the reason, and the next one asks again', async (t) => {
  let failing = true;
  const read = createCloudIamCredentials(options, {
    clock: createManualClock(),
    readRegion: async () => options.region,
    readCloudCredentials: async () => {
      if (failing) throw new Error('nothing found');
      return credentials;
    },
  });
  await t.throwsAsync(read(), {
    message: 'no cloud credentials to sign a token with: nothing found',
  });
  failing = false;
  t.truthy(await read());
});

test('a package that was left out is named, with the remedy', async (t) => {
  const error = await t.throwsAsync(loadOptional(() => import('@none/such' as string)));
  t.regex(
    error.message,
    /^tokens need the package @none\/such, which is not installed: install it/,
  );
});
