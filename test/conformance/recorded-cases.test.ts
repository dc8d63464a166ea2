// Runs every recorded case, in groups that each have one worker.
import test from 'ava';
import { type Case, readCaseGroups } from './case-file.ts';
import { runCase, runStartFailure } from './case-run.ts';
import {
  createSharedServers,
  startWorkerUnderTest,
  type WorkerUnderTest,
} from './worker-under-test.ts';

const caseTimeoutMs = 200_000;

const servers = createSharedServers();
const started = new Set<WorkerUnderTest>();

for (const group of readCaseGroups()) {
  let opening: Promise<WorkerUnderTest> | undefined;
  const open = async (): Promise<WorkerUnderTest> => {
    await servers.clear();
    const worker = await startWorkerUnderTest(group, servers);
    started.add(worker);
    return worker;
  };
  for (const [index, one] of group.entries()) {
    test.serial(`${one.about} (${one.id})`, async (t) => {
      t.timeout(caseTimeoutMs);
      opening ??= open();
      const worker = await opening;
      const problems = await runInWorker(worker, one);
      if (index === group.length - 1) {
        started.delete(worker);
        await worker.stop();
      }
      if (problems.length > 0) t.log(worker.process.output().slice(-2000));
      t.deepEqual(problems, []);
    });
  }
}

test.after.always('all started processes are stopped', async () => {
  await Promise.all([...started].map((worker) => worker.stop()));
  await servers.stop();
});

async function runInWorker(worker: WorkerUnderTest, one: Case): Promise<string[]> {
  if (one.start === 'fails') return runStartFailure(worker, one);
  await worker.waitUntilReady();
  return runCase(worker, one);
}
