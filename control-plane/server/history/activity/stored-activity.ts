// Keeps the activity in the state directory, so that it continues after a restart of the control plane.
import { join } from 'node:path';
import Type from 'typebox';
import type { Clock } from '../../../../shared/clock.ts';
import type { Log } from '../../../../shared/log.ts';
import { openStoredFile, type StoredFile, storedFormat } from '../stored-file.ts';
import { type Activity, maxEntries, maxTextLength } from './activity.ts';

const text = Type.String({ maxLength: maxTextLength });
const fileJson = Type.Object({
  format: Type.Literal(storedFormat),
  /** The description of the rules' store. */
  store: Type.String(),
  entries: Type.Array(
    Type.Object({
      atMs: Type.Number(),
      who: text,
      what: text,
      before: Type.Optional(text),
      after: Type.Optional(text),
      outcome: text,
    }),
    { maxItems: maxEntries },
  ),
});

/** 1,000 entries of the longest texts. */
const maxFileBytes = 8_000_000;

export interface StoredActivityDeps {
  readonly stateDirectory: string;
  /** The description of the store. */
  readonly store: string;
  readonly activity: Activity;
  readonly log: Log;
  readonly clock: Clock;
}

/** `read` of the result restores the activity of an earlier process. */
export function openStoredActivity({
  stateDirectory,
  store,
  activity,
  log,
  clock,
}: StoredActivityDeps): Omit<StoredFile<unknown>, 'read'> & { read(): Promise<void> } {
  const file = openStoredFile({
    path: join(stateDirectory, 'activity.json'),
    schema: fileJson,
    maxBytes: maxFileBytes,
    what: 'the action',
    without: 'the activity starts empty',
    refuse: (content) =>
      content.store === store ? undefined : `it is of another store, ${content.store}`,
    toContent(share) {
      const newest = activity.read();
      const some = newest.slice(0, Math.ceil(newest.length * share));
      const entries = some.map(({ before, after, ...entry }) => ({
        ...entry,
        ...(before !== undefined && { before }),
        ...(after !== undefined && { after }),
      }));
      return entries.length === 0 ? undefined : { format: storedFormat, store, entries };
    },
    log,
    clock,
  });
  return {
    ...file,
    async read() {
      const content = await file.read();
      if (content === undefined) return;
      activity.restore(
        content.entries.map((entry) => ({ before: undefined, after: undefined, ...entry })),
      );
    },
  };
}
