import test from 'ava';
import type { ToProcess } from './message.ts';
import { createRemoteProfiler } from './remote-profiler.ts';

function setUp({ hasProcess = true } = {}) {
  const sent: ToProcess[] = [];
  const profiler = createRemoteProfiler((message) => {
    sent.push(message);
    return hasProcess;
  });
  return { sent, profiler, asking: new AbortController() };
}

test('each profile is sent to the caller that requested it', async (t) => {
  const { sent, profiler, asking } = setUp();
  const first = profiler.cpu(1_000, asking.signal);
  const second = profiler.heap(2_000, asking.signal);
  t.deepEqual(sent, [
    { kind: 'profile', id: 1, of: 'cpu', durationMs: 1_000 },
    { kind: 'profile', id: 2, of: 'heap', durationMs: 2_000 },
  ]);
  profiler.receive({ kind: 'profile', id: 2, result: 'busy' });
  profiler.receive({ kind: 'profile', id: 1, result: Uint8Array.of(1, 2) });
  t.is(await second, 'busy');
  t.deepEqual(await first, Buffer.of(1, 2));
});

test('a caller that disconnects ends the profile', async (t) => {
  const { sent, profiler, asking } = setUp();
  const profile = profiler.cpu(120_000, asking.signal);
  asking.abort();
  t.deepEqual(sent.at(-1), { kind: 'end-profile', id: 1 });
  profiler.receive({ kind: 'profile', id: 1, result: Uint8Array.of(1) });
  t.deepEqual(await profile, Buffer.of(1));
});

test('a process that has ended or does not exist yields no profile', async (t) => {
  const { profiler, asking } = setUp();
  const profile = profiler.cpu(1_000, asking.signal);
  profiler.end();
  t.is(await profile, 'gone');
  t.is(await setUp({ hasProcess: false }).profiler.heap(1_000, asking.signal), 'gone');
});
