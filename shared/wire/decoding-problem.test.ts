import test from 'ava';
import { toDecodingProblem } from './decoding-problem.ts';
import { loadProtos } from './protos.ts';

const { rateLimitConfig } = loadProtos();

function problemOf(hex: string): string {
  try {
    rateLimitConfig.deserialize(Buffer.from(hex, 'hex'));
    return 'none';
  } catch (error) {
    return toDecodingProblem(error);
  }
}

test('the mistake in the bytes is named, and no detail of the decoder', (t) => {
  // A descriptor whose metadata has the entry `a`: first with an empty value, then without a value.
  t.is(problemOf('1a09 4207 0a05 0a01 61 1200'.replaceAll(' ', '')), 'none');
  t.is(problemOf('1a07 4205 0a03 0a01 61'.replaceAll(' ', '')), 'an entry of a map has no value');
  t.regex(problemOf('0aff'), /^index out of range/);
  t.regex(problemOf('7f'), /^invalid wire type/);
});
