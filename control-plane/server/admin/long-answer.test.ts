import test from 'ava';
import { toLongAnswer } from './long-answer.ts';

test('a short answer stays as it is, and a long one is the same JSON', async (t) => {
  const short = { yaml: 'domain: d' };
  t.is(toLongAnswer(short), short);
  const long = {
    yaml: 'é"\n'.repeat(100_000),
    changes: Array.from({ length: 3_000 }, (_, at) => ({ at })),
  };
  const answer = toLongAnswer(long);
  if (!(answer instanceof Response)) return t.fail();
  t.true((await answer.text()) === JSON.stringify(long));
  return undefined;
});

test('others are served while a long answer is written', async (t) => {
  const answer = toLongAnswer({ yaml: 'x'.repeat(20_000_000) });
  if (!(answer instanceof Response)) return t.fail();
  let turns = 0;
  const count = () => {
    turns++;
    turning = setImmediate(count);
  };
  let turning = setImmediate(count);
  t.is((await answer.text()).length, JSON.stringify({ yaml: '' }).length + 20_000_000);
  clearImmediate(turning);
  t.true(turns >= 10, `${turns}`);
  return undefined;
});
