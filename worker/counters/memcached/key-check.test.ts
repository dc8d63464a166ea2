import test from 'ava';
import { createHit, createRequest } from '../../../test/support/counting.ts';
import { findBadKey, toSentKey } from './key-check.ts';

function check(...keys: string[]): string | undefined {
  const hits = keys.map((key, index) => createHit({ key, descriptorIndex: index * 2 }));
  const error = findBadKey(createRequest(hits, { settle() {} }));
  return error && `${error.code}: ${error.message}`;
}

test('keys of up to 250 bytes are accepted', (t) => {
  t.is(check('x'.repeat(250), 'ü'.repeat(125)), undefined);
});

// Proof of migrating.md: A key that a memory cache does not take fails its call, naming the descriptor
test('a longer key is refused, its descriptor named', (t) => {
  t.is(
    check('short', 'x'.repeat(251)),
    'bad_request: descriptors[2]: its counter key has 251 bytes; a memory cache accepts at most 250',
  );
  t.regex(check('ü'.repeat(126)) ?? '', /descriptors\[0\].* 252 bytes/);
});

for (const character of [' ', '\t', '\r', '\n', '\0', '\u001f', '\u007f']) {
  test(`a key with ${JSON.stringify(character)} is refused`, (t) => {
    t.is(
      check('fine', `a${character}b`),
      'bad_request: descriptors[2]: its counter key has white space or a control character, which a memory cache does not accept',
    );
  });
}

test('a digest replaces the keys that are refused, and no others', (t) => {
  const sent = (key: string) => toSentKey(createHit({ key }));
  const bad = [
    'd_k_a b_60',
    `d_k_${'x'.repeat(250)}_60`,
    `d_k_${'x'.repeat(5_000)}_60`,
    'd_k_\n_60',
  ];
  const digests = bad.map(sent);
  for (const digest of digests) t.regex(digest, /^[0-9a-f]{64}$/);
  t.is(new Set(digests).size, bad.length);
  t.is(sent('d_k_v_60'), 'd_k_v_60');
});
