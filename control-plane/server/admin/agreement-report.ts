// Finds connected workers that disagree on the settings that decide how they count: such workers count separately
// without any error. worker/agreement.ts creates the texts; here they are only compared. Pure.
import Type from 'typebox';
import { agreementKey } from '../../../shared/agreement-key.ts';
import { toExcerpt } from '../../../shared/text-excerpt.ts';
import { joinBy, sumFields } from './joined.ts';
import type { WorkerJson } from './worker-json.ts';

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
  const announcing = workers.filter(({ metadata }) => Object.hasOwn(metadata, agreementKey));
  const byGroup = Map.groupBy(announcing, ({ group }) => group);
  return [...byGroup].map(([group, members]) => {
    const byAgreement = Map.groupBy(members, ({ metadata }) => metadata[agreementKey] ?? '');
    const agreements = [...byAgreement].flatMap(([agreement, [first, ...others]]) =>
      first === undefined
        ? []
        : {
            agreement: toExcerpt(agreement),
            workers: 1 + others.length,
            example: { id: first.id, address: first.address },
          },
    );
    return { group, count: byAgreement.size, agreements: byWorkers(agreements) };
  });
}

/** Merges the agreements among the workers of several control planes. */
export function mergeAgreements(all: readonly AgreementsJson[]): AgreementsJson[] {
  return joinBy(
    all,
    ({ group }) => group,
    (parts) => {
      const agreements = joinBy(
        parts.flatMap((part) => part.agreements),
        ({ agreement }) => agreement,
        (same) => ({ ...same[0], ...sumFields(same, ['workers']) }),
      );
      const count = Math.max(agreements.length, ...parts.map((part) => part.count));
      return { group: parts[0].group, count, agreements: byWorkers(agreements) };
    },
  );
}

/** The node groups whose workers disagree. */
export function findDisagreements(all: readonly AgreementsJson[]): AgreementsJson[] {
  return all.filter(({ count }) => count > 1);
}

function byWorkers(agreements: AgreementsJson['agreements']): AgreementsJson['agreements'] {
  return agreements
    .toSorted((a, b) => b.workers - a.workers || (a.agreement < b.agreement ? -1 : 1))
    .slice(0, maxAgreements);
}
