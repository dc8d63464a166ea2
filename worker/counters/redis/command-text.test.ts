import test from 'ava';
import fc from 'fast-check';
import { Command } from 'ioredis';
import { toCommandText, toIncrementText } from './command-text.ts';

/** What the client library would write, one character for each byte. */
function toClientText(name: string, ...parameters: (string | number)[]): string {
  const written = new Command(name, parameters).toWritable({} as never);
  return Buffer.from(written).toString('latin1');
}

const keys = fc.oneof(fc.string(), fc.string({ unit: 'binary' }));

test("a command has the client library's bytes, whatever the key", (t) => {
  fc.assert(
    fc.property(keys, fc.nat(), (key, seconds) => {
      t.is(toCommandText('EXPIRE', key, seconds), toClientText('EXPIRE', key, seconds));
    }),
  );
});

test("an increment has the client library's bytes, whatever the key and the amount", (t) => {
  fc.assert(
    fc.property(keys, fc.bigInt({ min: 0n, max: 2n ** 64n }), (key, amount) => {
      const written = toIncrementText(key, String(amount));
      t.is(written, toClientText('INCRBY', key, String(amount)));
    }),
  );
});

test('half a character is written as what stands for none', (t) => {
  t.is(toCommandText('GET', '\ud800'), '*2\r\n$3\r\nGET\r\n$3\r\n\xef\xbf\xbd\r\n');
});
