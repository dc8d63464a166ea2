// Finds connected workers that count or enforce otherwise than the others, from what their nodes announce: workers that
// disagree on the settings that decide how they count (worker/agreement.ts creates the texts; here they are only
// compared) count separately without any error, and a limit is not enforced by workers that were sent rules without the
// fields that only Ratelane's own workers read (behaviour: fields-of-our-own). Pure.
import Type from 'typebox';
import { agreementKey } from '../../../shared/agreement-key.ts';
import { extensionsKey } from '../../../shared/rules/wire/resource-fields.ts';
import { toExcerpt } from '../../../shared/text-excerpt.ts';
import type { InForceState } from '../snapshot/snapshot-state.ts';
import type { WorkerJson } from './fleet-json.ts';
import { joinBy, sumFields } from './joined.ts';

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

/** How the workers of a node group count. */
export const agreementsJson = Type.Object(
  {
    /** The node group, whose workers get the same rules. */
    group: Type.Union([Type.String(), Type.Null()]),
    /** The number of different agreements. */
    count: Type.Integer(),
    /** The agreements with the most workers first; at most 10. */
    agreements: Type.Array(
      Type.Object({
        agreement: Type.String(),
        workers: Type.Integer(),
        /** One of the workers with this agreement. */
        example: Type.Object({ id: Type.String(), address: Type.String() }),
      }),
    ),
  },
  { title: 'Agreements' },
);
export type AgreementsJson = Type.Static<typeof agreementsJson>;

const maxAgreements = 10;

/** Groups are examined separately, since fleets that are meant to count separately, such as two regions, are in
 * different groups. Workers that announce no agreement are skipped. */
export function countAgreements(workers: readonly WorkerJson[]): AgreementsJson[] {
  const each = workers.flatMap(
    ({ group, metadata: { [agreementKey]: agreement }, id, address }) => {
      if (agreement === undefined) return [];
      const own = { agreement: toExcerpt(agreement), workers: 1, example: { id, address } };
      return { group, count: 1, agreements: [own] };
    },
  );
  return joinAgreements(each);
}

/** Joins the agreements of workers, or of control planes. */
export function joinAgreements(all: readonly AgreementsJson[]): AgreementsJson[] {
  return joinBy(
    all,
    ({ group }) => group,
    (parts) => {
      const agreements = joinBy(
        parts.flatMap((part) => part.agreements),
        ({ agreement }) => agreement,
        (same) => ({ ...same[0], ...sumFields(same, ['workers']) }),
      );
      return {
        group: parts[0].group,
        count: parts.reduce((most, { count }) => Math.max(most, count), agreements.length),
        agreements: agreements
          .sort((a, b) => b.workers - a.workers || (a.agreement < b.agreement ? -1 : 1))
          .slice(0, maxAgreements),
      };
    },
  );
}

/** The node groups whose workers disagree. */
export function findDisagreements(all: readonly AgreementsJson[]): AgreementsJson[] {
  return all.filter(({ count }) => count > 1);
}
