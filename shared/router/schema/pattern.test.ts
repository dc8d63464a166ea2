import test from 'ava';
import { z } from 'zod';
import { testLines } from '../../../test/support/reviewed-lines.ts';
import { toJsonSchema } from '../standard-schema.ts';
import { whyExponential } from './pattern.ts';

testLines(
  test,
  new URL('pattern.txt', import.meta.url),
  (given) => whyExponential(given) ?? 'accepted',
);

test('the patterns that zod makes by itself are accepted', (t) => {
  const iso = [z.iso.datetime(), z.iso.date()];
  const ofNets = [z.hostname(), z.ipv4(), z.ipv6(), z.cidrv4(), z.email(), z.e164()];
  const made = [...iso, ...ofNets, z.uuid(), z.base64(), z.nanoid(), z.jwt()];
  for (const schema of made) {
    const { pattern } = toJsonSchema(schema as never, 'input') as { pattern?: string };
    if (pattern !== undefined) t.is(whyExponential(pattern), undefined, pattern);
  }
});
