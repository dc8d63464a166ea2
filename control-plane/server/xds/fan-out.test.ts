// Tests that a change reaches every stream, a few at a time.
import test from 'ava';
import { type OpenStream, OpenStreams } from './discovery-stream.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function createStreams(count: number) {
  const refreshed: number[] = [];
  const open = new OpenStreams();
  const streams: OpenStream[] = Array.from({ length: count }, (_, at) => ({
    refresh: () => void refreshed.push(at),
    finish() {},
  }));
  for (const stream of streams) open.add('sotw', stream);
  return { refreshed, streams, open };
}

test('every stream is notified once, and other work gets its turn in between', async (t) => {
  const { refreshed, streams, open } = createStreams(100);
  open.refresh();
  t.deepEqual(refreshed, []);
  await turn();
  t.is(refreshed.length, 32);
  while (refreshed.length < 100) await turn();
  await turn();
  t.deepEqual(
    refreshed,
    streams.map((_, at) => at),
  );
});

test('after a further change, streams already notified are notified again, after those still waiting', async (t) => {
  const { refreshed, streams, open } = createStreams(100);
  open.refresh();
  await turn();
  const reported = refreshed.length;
  open.refresh();
  while (refreshed.length < 100 + reported) await turn();
  await turn();
  t.is(refreshed.length, 100 + reported);
  t.deepEqual(
    refreshed.slice(0, 100),
    streams.map((_, at) => at),
  );
});

test('after a stop no stream is notified', async (t) => {
  const { refreshed, open } = createStreams(100);
  open.refresh();
  open.stop();
  await turn();
  t.deepEqual(refreshed, []);
});
