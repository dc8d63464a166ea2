import test from 'ava';
import { streamJson, toLongAnswer } from './long-answer.ts';

test('a short answer is unchanged, and a long one has the same JSON', async (t) => {
  const short = { yaml: 'domain: d' };
  t.is(await toLongAnswer(short), short);
  const long = {
    yaml: 'é"\n'.repeat(100_000),
    changes: Array.from({ length: 3_000 }, (_, at) => ({ at })),
  };
  const answer = await toLongAnswer(long);
  if (!(answer instanceof Response)) return t.fail('a long answer is a Response');
  t.true((await answer.text()) === JSON.stringify(long));
  return undefined;
});

test('other requests are served while a long answer is written', async (t) => {
  const answer = await toLongAnswer({ yaml: 'x'.repeat(20_000_000) });
  if (!(answer instanceof Response)) return t.fail('a long answer is a Response');
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

test('the items of a generator are made when they are sent', async (t) => {
  const list = Array.from({ length: 50_000 }, (_, at) => ({ at }));
  let made = 0;
  function* make() {
    for (const item of list) {
      made++;
      yield item;
    }
  }
  const reader = streamJson({ list: make(), after: 1 }).body?.getReader();
  t.is(made, 0);
  await reader?.read();
  t.true(made > 0 && made < list.length / 2, `${made}`);
  const response = streamJson({ list: make(), after: 1 });
  t.true((await response.text()) === JSON.stringify({ list, after: 1 }));
});

test('the end of a long answer is reported once: when it has been read, when its reader disconnects, or at once if it is short', async (t) => {
  let ends = 0;
  const send = (length: number) => toLongAnswer({ yaml: 'x'.repeat(length) }, () => ends++);
  await send(1);
  t.is(ends, 1);
  const [read, left] = [await send(2_000_000), await send(2_000_000)];
  if (!(read instanceof Response && left instanceof Response)) return t.fail('no Response');
  t.is(ends, 1);
  await read.text();
  t.is(ends, 2);
  await left.body?.cancel();
  t.is(ends, 3);
  return undefined;
});
