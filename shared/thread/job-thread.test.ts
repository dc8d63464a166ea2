import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import test, { type ExecutionContext } from 'ava';
import { eventually } from '../../test/support/eventually.ts';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { systemClock } from '../clock.ts';
import { type JobThreadDeps, type Next, ThreadOfJobs, TooBusy, TooMuch } from './job-thread.ts';

const side = JSON.stringify(new URL('thread-side.ts', import.meta.url));
const toProgram = (body: string) => `
  const { parentPort, receiveMessageOnPort } = require('node:worker_threads');
  parentPort.on('message', ({ pieces }) => {
    const answer = () => {
      pieces.postMessage(receiveMessageOnPort(pieces)?.message);
      parentPort.postMessage('done');
    };
    ${body}
  });`;

function createThread(t: ExecutionContext, program: string, more: Partial<JobThreadDeps> = {}) {
  const thread = new ThreadOfJobs({
    ...{ clock: systemClock, deadlineMs: 60_000, idleMs: 60_000 },
    startWorker: () => new Worker(toProgram(program), { eval: true }),
    ...more,
  });
  t.teardown(() => thread.close());
  return thread;
}

function* receive(next: Next): Generator<void, unknown> {
  yield;
  return next();
}

const jobOf = (number: number) => ({ subject: `job ${number}`, send: [{ number }], receive });

test('jobs are done one after the other, each with its own messages', async (t) => {
  const thread = createThread(t, 'answer();');
  const answers = await Promise.all([1, 2, 3].map((number) => thread.run(jobOf(number))));
  t.deepEqual(answers, [{ number: 1 }, { number: 2 }, { number: 3 }]);
});

test('a job that uses up its processor time is ended by its name, and the next one is done', async (t) => {
  const program = 'if (receiveMessageOnPort(pieces).message.number === 1) for (;;); answer();';
  const clock = createManualClock();
  const started: Worker[] = [];
  const thread = createThread(t, '', {
    ...{ clock, deadlineMs: 100 },
    startWorker() {
      const worker = new Worker(toProgram(program), { eval: true });
      started.push(worker);
      return worker;
    },
  });
  const first = thread.run(jobOf(1));
  const second = thread.run(jobOf(2));
  const ended = t.throwsAsync(first, {
    instanceOf: TooMuch,
    message: 'job 1 takes more than 0.1 s to read',
  });
  const [worker] = started;
  await once(worker as Worker, 'online');
  await eventually('it has used up more', async () => {
    const used = await worker?.cpuUsage();
    return used !== undefined && used.user > 200_000;
  });
  clock.advance(150);
  await ended;
  await t.notThrowsAsync(second);
});

test('a thread that gets little processor time has ten times as long', async (t) => {
  const clock = createManualClock();
  const patient = createThread(t, 'setTimeout(answer, 100);', { clock });
  const done = patient.run(jobOf(1));
  clock.advance(599_999);
  t.deepEqual(await done, { number: 1 });
  const silent = createThread(t, '', { clock });
  const never = silent.run(jobOf(2));
  clock.advance(600_000);
  await t.throwsAsync(never, { instanceOf: TooMuch });
});

test('jobs that are too large together are refused at once, and one that is too large alone is done', async (t) => {
  const thread = createThread(t, 'answer();', { mostWaiting: 10 });
  const large = thread.run({ ...jobOf(1), size: 100 });
  await t.throwsAsync(thread.run({ ...jobOf(2), size: 1 }), { instanceOf: TooBusy });
  await large;
  const some = [3, 4].map((number) => thread.run({ ...jobOf(number), size: 5 }));
  t.is((await Promise.all(some)).length, 2);
});

test('a job that needs much memory frees it before its result is received, and its thread stays', async (t) => {
  const program = `import(${side}).then(({ serveJobs }) => serveJobs((next, send) => {
    const all = Array.from({ length: 1_000_000 }, (_, at) => ({ at }));
    send({ made: all.length });
  }));`;
  const started: Worker[] = [];
  const thread = createThread(t, '', {
    startWorker() {
      const worker = new Worker(program, { eval: true });
      started.push(worker);
      return worker;
    },
  });
  for (const number of [1, 2]) {
    t.deepEqual(await thread.run(jobOf(number)), { made: 1_000_000 });
    const statistics = await started[0]?.getHeapStatistics();
    t.true(statistics !== undefined && statistics.total_physical_size < 20_000_000);
  }
  t.is(started.length, 1);
});

for (const [what, step, message] of [
  ['time', 'for (;;) check();', 'job 1 takes more than 0.1 s to read'],
  [
    'memory',
    'const all = []; for (;;) { all.push(Array(10_000).fill({})); check(); }',
    'job 1 needs more memory than there is',
  ],
] as const) {
  test(`a job that has used up its ${what} ends at its next check, and its thread stays`, async (t) => {
    const program = `import(${side}).then(({ serveJobs }) => serveJobs((next, send, check) => {
      if (next().number === 1) { ${step} }
      send({ made: 2 });
    }));`;
    // A fourth of it exceeds the objects that live between two checks.
    const resourceLimits = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 4 };
    let starts = 0;
    const thread = createThread(t, '', {
      // This clock never advances: only the thread itself ends a job.
      ...{ clock: createManualClock(), deadlineMs: what === 'time' ? 100 : 60_000 },
      startWorker() {
        starts++;
        return new Worker(program, { eval: true, resourceLimits });
      },
    });
    await t.throwsAsync(thread.run(jobOf(1)), { instanceOf: TooMuch, message });
    t.deepEqual(await thread.run(jobOf(2)), { made: 2 });
    t.is(starts, 1);
  });
}

test('a job whose caller has disconnected is not begun', async (t) => {
  const thread = createThread(t, 'answer();');
  const first = thread.run(jobOf(1));
  const controller = new AbortController();
  let isSent = false;
  function* send() {
    isSent = true;
    yield {};
  }
  const second = thread.run({ ...jobOf(2), send: send(), signal: controller.signal });
  controller.abort();
  await t.throwsAsync(second, { name: 'AbortError' });
  t.false(isSent);
  await first;
});

test('a closed thread rejects its current job and those that wait', async (t) => {
  const thread = createThread(t, '');
  const all = [1, 2].map((number) =>
    t.throwsAsync(thread.run(jobOf(number)), { message: /closed/ }),
  );
  await thread.close();
  await Promise.all(all);
});
