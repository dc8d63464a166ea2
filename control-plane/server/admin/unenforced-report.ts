// Finds workers that were sent rules without the fields that only Ratelane's own workers read (behaviour:
// fields-of-our-own): such a limit may be enforced by the other workers only. Pure.
import Type from 'typebox';
import { extensionsKey } from '../../../shared/rules/wire/resource-fields.ts';
import { toExcerpt } from '../../../shared/text-excerpt.ts';
import type { InForceState } from '../snapshot/snapshot-state.ts';
import type { WorkerJson } from './fleet-json.ts';

export const unenforcedJson = Type.Object(
  {
    domain: Type.String(),
    /** Keys of rules, such as `algorithm`. */
    fields: Type.Array(Type.String()),
    /** How many workers of the domain announce none of these fields in their node's metadata, but all its other
     * fields. */
    workers: Type.Integer(),
    /** One of the workers. */
    example: Type.Object({ id: Type.String(), address: Type.String() }),
  },
  { title: 'Unenforced' },
);
export type UnenforcedJson = Type.Static<typeof unenforcedJson>;

/** One entry for each domain and each set of missing fields; at most 100. */
export function findUnenforced(
  workers: readonly WorkerJson[],
  { leftOut, groups }: Pick<InForceState, 'leftOut' | 'groups'>,
): UnenforcedJson[] {
  const reports = leftOut.flatMap(({ domain, fields: paths }) => {
    const fields = [...new Set(paths.map((path) => path.slice(path.lastIndexOf('.') + 1)))].sort();
    const having = new Set(
      groups.filter(({ domains }) => domains.includes(domain)).map(({ name }) => name),
    );
    const found = new Map<string, UnenforcedJson>();
    for (const { group, metadata, id, address } of workers) {
      if (group === null || !having.has(group)) continue;
      // An older worker reads the fields that existed in its version.
      const announced = new Set(metadata[extensionsKey]?.split(' '));
      const lacked = fields.filter((field) => !announced.has(field));
      if (lacked.length === 0) continue;
      const key = lacked.join(' ');
      const none = { domain: toExcerpt(domain), fields: lacked, workers: 0 };
      const before = found.get(key) ?? { ...none, example: { id, address } };
      found.set(key, { ...before, workers: before.workers + 1 });
    }
    return [...found.values()];
  });
  return reports.slice(0, maxReports);
}

const maxReports = 100;
