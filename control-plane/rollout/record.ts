// How far a rollout is, or how it ended, as text: for a control plane that is killed during it, and for the
// other control planes of a fleet.
import Type from 'typebox';
import { Value } from 'typebox/value';
import { limitsJson } from './pools.ts';

const recordJson = Type.Object({
  format: Type.Literal(2),
  /** Of this rollout: a directory's revision may come again. */
  id: Type.String({ maxLength: 64 }),
  revision: Type.String({ maxLength: 128 }),
  /** In force before; '' where it is not known. */
  base: Type.String({ maxLength: 128 }),
  outcome: Type.Union([
    Type.Literal('running'),
    Type.Literal('paused'),
    Type.Literal('taken_back'),
    Type.Literal('in_force'),
  ]),
  /** Counted from 0. */
  step: Type.Integer({ minimum: 0 }),
  /** By pool (pools.ts), nodes up to this place have it; empty for none. */
  limits: limitsJson,
  /** Why it is paused or was taken back. */
  reason: Type.String({ maxLength: 8_192 }),
  /** The control plane that decides. */
  leader: Type.Object({
    /** Of the process. */
    id: Type.String({ maxLength: 64 }),
    /** For people. */
    name: Type.String({ maxLength: 300 }),
  }),
  /** The name of the leader before, which has stopped; '' where this one began the rollout. */
  after: Type.String({ maxLength: 300 }),
  /** Counts the leader's signs of life. */
  beat: Type.Integer({ minimum: 0 }),
});
type StoredRecord = Type.Static<typeof recordJson>;
export type RolloutRecord = Omit<StoredRecord, 'format'>;

/** Whether workers may still get the revision, or lose it. */
export function isOpen({ outcome }: RolloutRecord): boolean {
  return outcome === 'running' || outcome === 'paused';
}

export function toRecordText(record: RolloutRecord): string {
  return JSON.stringify({ format: 2, ...record });
}

/** Undefined for anything else. */
export function parseRecord(text: string): RolloutRecord | undefined {
  try {
    const content: unknown = JSON.parse(text);
    if (!Value.Check(recordJson, content)) return undefined;
    const { format, ...record } = content;
    return record;
  } catch {
    return undefined;
  }
}
