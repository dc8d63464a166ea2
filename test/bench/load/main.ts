// The load generator as a separate process, so that it shares no core with the service: receives loads from the parent,
// one after another, and reports the results.
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
// Without a parent, the results have no receiver.
process.once('disconnect', () => process.exit());
