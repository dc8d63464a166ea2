// Workers that were sent rules without the fields that only Ratelane's own workers read
// (behaviour: fields-of-our-own): a limit may hold on the others only. Pure.
import Type from 'typebox';
import { extensionsKey } from '../../shared/rules/wire/resource-fields.ts';
import { toExcerpt } from '../../shared/text-excerpt.ts';
import type { InForceState } from '../snapshot/snapshot-state.ts';
import type { WorkerJson } from './worker-json.ts';

export const unenforcedJson = Type.Object(
  {
    domain: Type.String(),
    /** Keys of rules, such as `algorithm`. */
    fields: Type.Array(Type.String()),
    /** How many workers of the domain do not announce all of them in their node's metadata. */
    workers: Type.Integer(),
    /** One of the workers. */
    example: Type.Object({ id: Type.String(), address: Type.String() }),
  },
  { title: 'Unenforced' },
);
export type UnenforcedJson = Type.Static<typeof unenforcedJson>;

/** One for each domain with such workers; at most 100. */
export function findUnenforced(
  workers: readonly WorkerJson[],
  { leftOut, groups }: Pick<InForceState, 'leftOut' | 'groups'>,
): UnenforcedJson[] {
  const reports = leftOut.flatMap(({ domain, fields: paths }) => {
    const fields = [...new Set(paths.map((path) => path.slice(path.lastIndexOf('.') + 1)))].sort();
    const having = new Set(
      groups.filter(({ domains }) => domains.includes(domain)).map(({ name }) => name),
    );
    const [first, ...others] = workers.filter(
      ({ group, metadata }) =>
        group !== null && having.has(group) && !announcesAll(metadata[extensionsKey], fields),
    );
    if (first === undefined) return [];
    const example = { id: first.id, address: first.address };
    return [{ domain: toExcerpt(domain), fields, workers: 1 + others.length, example }];
  });
  return reports.slice(0, maxReports);
}

const maxReports = 100;

function announcesAll(announced: string | undefined, fields: readonly string[]): boolean {
  const words = new Set(announced?.split(' '));
  return fields.every((field) => words.has(field));
}
