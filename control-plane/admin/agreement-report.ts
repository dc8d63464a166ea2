// Whether connected workers agree on the settings that decide how they count: if not, they count
// separately without any error. worker/agreement.ts makes the texts; here they are only compared. Pure.
import Type from 'typebox';
import { agreementKey } from '../../shared/agreement-key.ts';
import { toExcerpt } from '../../shared/text-excerpt.ts';
import type { WorkerJson } from './worker-json.ts';

export const disagreementJson = Type.Object(
  {
    /** The node group, whose workers get the same rules. */
    group: Type.Union([Type.String(), Type.Null()]),
    /** How many different agreements there are. */
    count: Type.Integer(),
    /** Those with the most workers first; at most 10. */
    agreements: Type.Array(
      Type.Object({
        agreement: Type.String(),
        workers: Type.Integer(),
        /** One of the workers. */
        example: Type.Object({ id: Type.String(), address: Type.String() }),
      }),
    ),
  },
  { title: 'Disagreement' },
);
export type DisagreementJson = Type.Static<typeof disagreementJson>;

const maxAgreements = 10;

/**
 * The node groups whose workers differ. Groups are examined separately, since fleets that count
 * separately, as in two regions, are in different groups. Workers that announce nothing are skipped.
 */
export function findDisagreements(workers: readonly WorkerJson[]): DisagreementJson[] {
  const announcing = workers.filter(({ metadata }) => Object.hasOwn(metadata, agreementKey));
  const byGroup = Map.groupBy(announcing, ({ group }) => group);
  return [...byGroup].flatMap(([group, members]) => {
    const byAgreement = Map.groupBy(members, ({ metadata }) => metadata[agreementKey] ?? '');
    if (byAgreement.size < 2) return [];
    const agreements = [...byAgreement].flatMap(([agreement, [first, ...others]]) =>
      first === undefined
        ? []
        : {
            agreement: toExcerpt(agreement),
            workers: 1 + others.length,
            example: { id: first.id, address: first.address },
          },
    );
    agreements.sort((a, b) => b.workers - a.workers || (a.agreement < b.agreement ? -1 : 1));
    return { group, count: byAgreement.size, agreements: agreements.slice(0, maxAgreements) };
  });
}
