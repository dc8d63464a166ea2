// Finds connected workers that disagree on the settings that decide how they count: such workers count separately
// without any error. worker/agreement.ts creates the texts; here they are only compared. Pure.
import Type from 'typebox';
import { agreementKey } from '../../../shared/agreement-key.ts';
import { toExcerpt } from '../../../shared/text-excerpt.ts';
import type { WorkerJson } from './fleet-json.ts';
import { joinBy, sumFields } from './joined.ts';

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
