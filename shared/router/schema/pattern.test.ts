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
  const made = [
    z.email(),
    z.uuid(),
    z.iso.datetime(),
    z.iso.date(),
    z.hostname(),
    z.ipv4(),
    z.ipv6(),
    z.base64(),
    z.cidrv4(),
    z.e164(),
    z.nanoid(),
    z.jwt(),
  ];
  for (const schema of made) {
    const { pattern } = toJsonSchema(schema as never, 'input') as { pattern?: string };
    if (pattern !== undefined) t.is(whyExponential(pattern), undefined, pattern);
  }
});
