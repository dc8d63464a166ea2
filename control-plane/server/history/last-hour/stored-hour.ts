// Keeps the last hour in the state directory, so that charts continue after a restart of the control plane. The time
// between a killed process' last write and its end is a gap.
import { join } from 'node:path';
import Type, { type Static } from 'typebox';
import type { Clock } from '../../../../shared/clock.ts';
import type { Log } from '../../../../shared/log.ts';
import type { TrafficHistory } from '../../fleet/traffic-history.ts';
import { openStoredFile, storedFormat } from '../stored-file.ts';
import { type Marks, markKind, maxMarks, maxMarkTextLength } from './marks.ts';

const maxSlots = 720;
const count = Type.Number({ minimum: 0 });
const fileJson = Type.Object({
  format: Type.Literal(storedFormat),
  /** The description of the rules' store. */
  store: Type.String(),
  /** The revision in force; null if there is none. */
  inForce: Type.Union([Type.String({ maxLength: 128 }), Type.Null()]),
  /** Start, decisions, over limit, errors. */
  slots: Type.Array(Type.Tuple([count, count, count, count]), { maxItems: maxSlots }),
  marks: Type.Array(
    Type.Object({
      atMs: Type.Number(),
      kind: markKind,
      revision: Type.Optional(Type.String({ maxLength: 128 })),
      text: Type.String({ maxLength: maxMarkTextLength + 3 }),
    }),
    { maxItems: maxMarks },
  ),
});

export interface StoredHour {
  /** Restores the hour of an earlier process, and resolves with the revision that was in force then. A file that is
   * damaged or of another store is logged and ignored: never rejects. */
  read(): Promise<string | undefined>;
  /** Starts writing periodically. */
  start(): void;
  /** Resolves when the last write is done. */
  stop(): Promise<void>;
}

export interface StoredHourDeps {
  readonly stateDirectory: string;
  /** The description of the store. */
  readonly store: string;
  readonly history: TrafficHistory;
  readonly marks: Marks;
  readonly readInForce: () => string | undefined;
  readonly log: Log;
  readonly clock: Clock;
}

/** 720 slots and 400 marks of ordinary texts take a tenth of it. */
const maxFileBytes = 1_000_000;

export function openStoredHour(deps: StoredHourDeps): StoredHour {
  const { stateDirectory, store, history, marks, log, clock } = deps;

  function toContent(share: number): Static<typeof fileJson> | undefined {
    const slots = newest(history.read(), maxSlots * share).map(
      ({ atMs, ...counts }): [number, number, number, number] => [
        atMs,
        toThousandths(counts.decisions),
        toThousandths(counts.overLimit),
        toThousandths(counts.errors),
      ],
    );
    const happened = newest(marks.read(), maxMarks * share).map(({ revision, ...mark }) => ({
      ...mark,
      ...(revision !== undefined && { revision }),
    }));
    if (slots.length + happened.length === 0) return undefined;
    return {
      format: storedFormat,
      store,
      inForce: deps.readInForce() ?? null,
      slots,
      marks: happened,
    };
  }

  const file = openStoredFile({
    path: join(stateDirectory, 'last-hour.json'),
    schema: fileJson,
    maxBytes: maxFileBytes,
    what: 'the last hour of charts',
    without: 'the charts start empty',
    refuse: (content) =>
      content.store === store ? undefined : `it is of another store, ${content.store}`,
    toContent,
    log,
    clock,
  });

  return {
    async read() {
      const content = await file.read();
      if (content === undefined) return undefined;
      history.restore(
        content.slots.map(([atMs, decisions, overLimit, errors]) => ({
          atMs,
          decisions,
          overLimit,
          errors,
        })),
      );
      marks.restore(content.marks.map((mark) => ({ revision: undefined, ...mark })));
      return content.inForce ?? undefined;
    },
    start: file.start,
    stop: file.stop,
  };
}

/** The newest items of a list whose newest item is last. */
function newest<Item>(items: readonly Item[], count: number): readonly Item[] {
  return items.slice(-Math.ceil(count));
}

function toThousandths(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
