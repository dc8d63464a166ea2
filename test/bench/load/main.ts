// The load generator as a process of its own, so that it shares no core with the service: takes its
// orders from the parent, one after the other, and reports what it saw.
import { type LoadMoment, type LoadOptions, type LoadResult, runLoad } from './load-run.ts';

export type LoadReport =
  | { readonly kind: 'moment'; readonly moment: LoadMoment; readonly answered: number }
  | { readonly kind: 'result'; readonly result: LoadResult }
  | { readonly kind: 'failure'; readonly reason: string };

const report = (message: LoadReport): void => {
  process.send?.(message);
};

process.on('message', (options: LoadOptions) => {
  runLoad(options, (moment, answered) => report({ kind: 'moment', moment, answered })).then(
    (result) => report({ kind: 'result', result }),
    (error: unknown) => report({ kind: 'failure', reason: String(error) }),
  );
});
// Without a parent there is nobody to measure for.
process.once('disconnect', () => process.exit());
