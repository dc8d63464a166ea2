import test from 'ava';
import { toErrorTrailers } from './answer-blocks.ts';

test('the message of an error has no blank at the start or the end, even if a long one is cut', (t) => {
  const messageOf = (text: string) => {
    const fields = toErrorTrailers(2, text).toString('latin1');
    return fields.slice(fields.lastIndexOf('grpc-message') + 'grpc-message'.length + 1);
  };
  t.is(messageOf(' a b '), '%20a b%20');
  t.true(messageOf(`${'x'.repeat(999)} y`).endsWith('x%20'));
});
