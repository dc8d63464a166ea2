// The program of a thread of work-thread.ts. What a job needs is loaded with the first one of its kind.
import { type DoJob, serveJobs } from '../../shared/thread/thread-side.ts';
import type { WorkHead } from './work-thread.ts';

const load: Readonly<Record<WorkHead['work'], () => Promise<DoJob>>> = {
  build: async () => (await import('./snapshot/building-side.ts')).doBuildJob,
  lift: async () => (await import('./admin/lift-side.ts')).doLiftJob,
  diff: async () => (await import('./admin/diff-side.ts')).doDiffJob,
  effect: async () => (await import('./admin/effect-side.ts')).doEffectJob,
};

serveJobs(async (next, send, check) => {
  const { work } = next() as WorkHead;
  const doJob = await load[work]();
  await doJob(next, send, check);
});
