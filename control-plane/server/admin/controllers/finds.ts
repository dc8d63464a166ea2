// `/finds`: finds rules, domains, workers and revisions by a part of their names, for a search box.
import Type from 'typebox';
import { runInSlices } from '../../../../shared/in-slices.ts';
import { type Fields, op } from '../../../../shared/router/index.ts';
import type { LocatedRule } from '../../../../shared/rules/lookup/located-rule.ts';
import { findSharedIds, toWorkerName } from '../../fleet/worker-name.ts';
import { AdminController } from '../admin-controller.ts';
import { revisionJson, toRevisionJson } from '../revision-json.ts';
import { hasText, listRules, locatingRules, type RuleRow, toRow } from '../rule-rows.ts';

const findsJson = Type.Object(
  {
    domains: Type.Array(Type.String()),
    rules: Type.Array(
      Type.Object({
        domain: Type.String(),
        rule: Type.String(),
        limits: Type.Array(Type.String()),
        file: Type.String(),
      }),
    ),
    values: Type.Optional(
      Type.Array(
        Type.Object({
          domain: Type.String(),
          entries: Type.Array(Type.Object({ key: Type.String(), value: Type.String() })),
          limits: Type.Array(Type.String()),
        }),
        { description: 'Requests with the text as the value of a rule that counts each value' },
      ),
    ),
    workers: Type.Array(Type.String({ description: 'Names as `GET /workers` has them' })),
    revisions: Type.Array(revisionJson),
  },
  { title: 'Finds' },
);
export type FindsJson = Type.Static<typeof findsJson>;

/** The most results of each kind. */
const most = 6;
const searchedRevisions = 200;

export class Default extends AdminController {
  static readonly GET = op({
    summary: 'Rules, domains, workers and revisions by a part of their names',
    description: 'At most six of each. Workers are those of this control plane.',
    query: Type.Object({
      text: Type.String({ minLength: 1, maxLength: 200, description: 'In any case' }),
    }),
    returns: { 200: findsJson },
    failures: { 503: undefined },
  });

  async GET({ text }: Fields<typeof Default.GET>) {
    const { workers, store } = this.api;
    const sought = text.toLowerCase();
    const isFound = (...names: (string | undefined)[]) =>
      names.some((name) => name?.toLowerCase().includes(sought));
    const located = await runInSlices(locatingRules(await this.readDocumentsNow()));
    const { rules, open } = await runInSlices(findingRules(located, sought));
    const listed = workers.list();
    const shared = findSharedIds(listed);
    const history = await this.fromStore(store.history(searchedRevisions));
    return {
      domains: [...located.keys()].filter((name) => isFound(name)).slice(0, most),
      rules: rules.map(({ domain, row: { rule, limits, file } }) => ({
        domain,
        rule,
        limits,
        file,
      })),
      values: open.map(({ domain, row: { entries, limits } }) => ({
        domain,
        entries: entries.map(({ key, value }) => ({ key, value: value || text })),
        limits: [...limits],
      })),
      workers: listed
        .map((worker) => ({ name: toWorkerName(worker, shared.has(worker.node.id)), worker }))
        .filter(({ name, worker }) => isFound(name, worker.address))
        .slice(0, most)
        .map(({ name }) => name),
      revisions: history
        .filter(({ id, author, message }) => id.startsWith(sought) || isFound(author, message))
        .slice(0, most)
        .map(toRevisionJson),
    };
  }
}

interface FoundRule {
  readonly domain: string;
  readonly row: RuleRow;
}

/** The first rules that contain the text, which is in lower case, and the first that count each value. In steps. */
function* findingRules(
  located: ReadonlyMap<string, readonly LocatedRule[]>,
  sought: string,
): Generator<void, { readonly rules: FoundRule[]; readonly open: FoundRule[] }> {
  const rules: FoundRule[] = [];
  const open: FoundRule[] = [];
  let seen = 0;
  for (const [domain, top] of located) {
    for (const rule of listRules(domain, top)) {
      if (rules.length === most && open.length === most) return { rules, open };
      if (++seen % 100 === 0) yield;
      if (rules.length < most && hasText(rule, sought)) rules.push({ domain, row: toRow(rule) });
      if (open.length === most || rule.located.descriptor.value !== '') continue;
      const row = toRow(rule);
      if (countsEachValue(row)) open.push({ domain, row });
    }
  }
  return { rules, open };
}

/** Whether the rule counts each value, and needs no other value in the request. */
function countsEachValue({ entries, limits }: RuleRow): boolean {
  const above = entries.slice(0, -1);
  return (
    limits.length > 0 &&
    limits[0] !== 'unlimited' &&
    entries.at(-1)?.value === '' &&
    above.every(({ value }) => value !== '' && !value.includes('*'))
  );
}
