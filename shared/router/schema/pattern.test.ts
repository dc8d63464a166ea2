import test from 'ava';
import { z } from 'zod';
import { toJsonSchema } from '../standard-schema.ts';
import { whyExponential } from './pattern.ts';

test('patterns that take a power of the length of the text are accepted', (t) => {
  for (const pattern of [
    '^[a-z0-9]+(?:-[a-z0-9]+)*$',
    '^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$',
    '^(?:[0-9a-f]{2}:){5}[0-9a-f]{2}$',
    '^(?:[0-9]{1,3}\\.){3}[0-9]{1,3}$',
    '^(?:GET|HEAD|POST|PUT) /[^ ]*$',
    '^[\\w.+-]+@(?:[\\w-]+\\.)+[a-z]{2,}$',
    '^\\p{L}+\\d*$',
    '^(?:a{0,3}b)*$',
    '^(?:"[^"]*"|[^",]+)(?:,(?:"[^"]*"|[^",]+))*$',
    '^(?=.{1,9}$)(?:a-?)+$',
    '^a*a*b$',
    '^(?i:ab)+$',
    '^a{x',
    '^(?<name>a)??$',
  ]) {
    t.is(whyExponential(pattern), undefined, pattern);
  }
});

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
    const { pattern } = toJsonSchema(schema as never) as { pattern?: string };
    if (pattern !== undefined) t.is(whyExponential(pattern), undefined, pattern);
  }
});

test('patterns that can take exponential time are refused', (t) => {
  for (const pattern of [
    '(a+)+$',
    '^(a|a)*$',
    '^(a|b|ab)*c',
    '^(\\w+\\s?)*$',
    '^([a-z]?[a-z0-9])+$',
    '^(?:a?a?)+$',
    '^(a*)*$',
    '^(?:a*|b*)*$',
    '^(.*a){12}$',
    '^([a-z]{1,20}){1,20}$',
    '^(?:[a-z]+){2,}$',
    '^(?=(?:a+)+$)a',
    '^(?:\\d|[0-9])*x',
    '^(?i:a|A)*$',
    '^(?:é|\\u00e9)*$',
  ]) {
    t.is(whyExponential(pattern), 'a repetition can read one text in several ways', pattern);
  }
  t.is(whyExponential('(a)\\1'), 'it has a back-reference');
  t.is(whyExponential('(a'), 'it is no regular expression');
});
