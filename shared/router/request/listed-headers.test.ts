import test from 'ava';
import fc from 'fast-check';
import { ListedHeaders } from './listed-headers.ts';

const name = fc.constantFrom('a', 'B', 'x-c', 'Set-Cookie', 'vary');
const value = fc.string({ unit: fc.constantFrom(...'ab ,;=\t\u00e9') });
const step = fc.oneof(
  fc.record({ does: fc.constantFrom('set', 'append'), name, value }),
  fc.record({ does: fc.constant('delete'), name, value }),
);

test('headers are those that the platform would have, after any steps', (t) => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
      const [own, others] = [new ListedHeaders(), new Headers()];
      for (const headers of [own, others]) {
        for (const { does, name, value } of steps) {
          if (does === 'set') headers.set(name, value);
          else if (does === 'append') headers.append(name, value);
          else headers.delete(name);
        }
      }
      t.deepEqual([...own].sort(), [...others].sort());
      t.deepEqual(own.getSetCookie(), others.getSetCookie());
      for (const one of ['a', 'b', 'X-C', 'set-cookie']) {
        t.is(own.get(one), others.get(one));
        t.is(own.has(one), others.has(one));
      }
      t.deepEqual([...new Headers(own)], [...new Headers(others)], 'the platform takes them');
      t.deepEqual([...own.keys()].sort(), [...others.keys()].sort());
      t.deepEqual([...own.values()].sort(), [...others.values()].sort());
    }),
  );
});

test('names that a client has sent are found in any case, and repeated ones are joined', (t) => {
  const headers = new ListedHeaders(['Accept', 'a', 'ACCEPT', 'b', 'X-One', '1']);
  t.is(headers.get('accept'), 'a, b');
  t.is(new ListedHeaders(['Cookie', 'a=1', 'cookie', 'b=2']).get('cookie'), 'a=1; b=2');
  t.deepEqual([...headers].flat(), ['accept', 'a, b', 'x-one', '1']);
});
