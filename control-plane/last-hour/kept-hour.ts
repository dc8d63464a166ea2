// The last hour in the state directory, so that charts go on after a restart of the control plane: written every half
// minute while there is news, and at the end. What a killed process had seen since is a gap.
import { mkdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import Type from 'typebox';
import { Value } from 'typebox/value';
import { type Clock, repeatAfter } from '../../shared/clock.ts';
import { errorText } from '../../shared/errors.ts';
import type { Log } from '../../shared/log.ts';
import { codeOf } from '../../shared/rules-directory.ts';
import type { TrafficHistory } from '../fleet/traffic-history.ts';
import { writeFileAtomically } from '../store/atomic-file.ts';
import { type Marks, markKind, maxMarks, maxMarkTextLength } from './marks.ts';

const count = Type.Number({ minimum: 0 });
const fileJson = Type.Object({
  format: Type.Literal(1),
  /** The description of the store of the rules. */
  store: Type.String(),
  /** The revision; null while none is. */
  inForce: Type.Union([Type.String({ maxLength: 128 }), Type.Null()]),
  /** Start, decisions, over limit, errors. */
  slots: Type.Array(Type.Tuple([count, count, count, count]), { maxItems: 720 }),
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

export interface KeptHour {
  /** Restores what an earlier process knew, and resolves with the revision that was in force then. A file that is damaged
   * or of something else is logged and done without: it never rejects. */
  read(): Promise<string | undefined>;
  /** From now on it is written. */
  start(): void;
  /** Resolves when it is written. */
  stop(): Promise<void>;
}

export interface KeptHourDeps {
  readonly stateDirectory: string;
  /** The description of the store. */
  readonly store: string;
  readonly history: TrafficHistory;
  readonly marks: Marks;
  readonly readInForce: () => string | undefined;
  readonly log: Log;
  readonly clock: Clock;
}

export const keepMs = 30_000;
/** 720 slots and 100 marks take a tenth of it. */
const maxFileBytes = 1_000_000;

export function openKeptHour(deps: KeptHourDeps): KeptHour {
  const { stateDirectory, store, history, marks, log, clock } = deps;
  const path = join(stateDirectory, 'last-hour.json');
  let written = '';
  let hasFailed = false;
  let writing: Promise<void> = Promise.resolve();
  let stopWriting = () => {};

  function toText(): string | undefined {
    const slots = history
      .read()
      .map(({ atMs, ...counts }) => [
        atMs,
        ...[counts.decisions, counts.overLimit, counts.errors].map(toThousandths),
      ]);
    const happened = marks.read();
    if (slots.length + happened.length === 0) return undefined;
    const inForce = deps.readInForce() ?? null;
    return JSON.stringify({ format: 1, store, inForce, slots, marks: happened });
  }

  async function write(): Promise<void> {
    const text = toText();
    if (text === undefined || text === written) return;
    try {
      await mkdir(stateDirectory, { recursive: true, mode: 0o700 });
      await writeFileAtomically(path, text, 0o600);
      written = text;
      hasFailed = false;
    } catch (error) {
      if (!hasFailed) {
        log.warning(
          `${path} cannot be written (${errorText(error)}): after a restart the charts begin anew`,
        );
      }
      hasFailed = true;
    }
  }

  function keep(): Promise<void> {
    writing = writing.then(write);
    return writing;
  }

  return {
    async read() {
      try {
        if ((await stat(path)).size > maxFileBytes) throw new Error('it is too large');
        const content: unknown = JSON.parse(await readFile(path, 'utf8'));
        if (!Value.Check(fileJson, content)) throw new Error('it is not the last hour of charts');
        if (content.store !== store) throw new Error(`it is about ${content.store}`);
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
      } catch (error) {
        if (codeOf(error) !== 'ENOENT') {
          log.warning(`${path} cannot be read (${errorText(error)}): the charts begin anew`);
        }
        return undefined;
      }
    },
    start() {
      stopWriting = repeatAfter(clock, keepMs, keep);
    },
    stop() {
      stopWriting();
      return keep();
    },
  };
}

function toThousandths(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
