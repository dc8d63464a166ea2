// `/rules`: the rules in force, one row each.
import Type from 'typebox';
import { runInSlices } from '../../../../shared/in-slices.ts';
import { type Fields, HttpError, op, optional, part } from '../../../../shared/router/index.ts';
import { AdminController } from '../admin-controller.ts';
import { streamJson, toLongAnswer } from '../long-answer.ts';
import {
  countingRules,
  findingRules,
  type ListedRule,
  locatingRules,
  type RuleRow,
  ruleRowJson,
  toRow,
  toUnknownDomainText,
} from '../rule-rows.ts';

const domainName = part('domain', Type.String({ minLength: 1, maxLength: 1024 }));
const domainsJson = Type.Object({
  revision: Type.String(),
  total: Type.Integer(),
  domains: Type.Array(Type.Object({ domain: Type.String(), rules: Type.Integer() })),
});
export type DomainsJson = Type.Static<typeof domainsJson>;
const rulesJson = Type.Object({
  revision: Type.String(),
  domain: Type.String(),
  total: Type.Integer({ description: 'The number of rules found' }),
  rules: Type.Array(ruleRowJson),
});
export type RulesJson = Type.Static<typeof rulesJson>;

const fewRows = 100;

export class Default extends AdminController {
  static readonly GET = op({
    summary: 'The rules in force of a domain, a parent before those below it',
    path: [optional(domainName)],
    query: Type.Object({
      search: Type.Optional(
        Type.String({ maxLength: 200, description: 'Part of a name, a limit, an owner or a file' }),
      ),
      offset: Type.Integer({ default: 0, minimum: 0 }),
      limit: Type.Integer({ default: 500, minimum: 1, maximum: 5000, description: 'Of a list' }),
    }),
    returns: { 200: rulesJson },
    failures: { 503: undefined },
    shorter: {
      0: {
        summary: 'List the domains in force',
        returns: { 200: domainsJson },
      },
    },
  });

  async GET({ search, offset, limit }: Fields<typeof Default.GET>, domain?: string) {
    const revision = this.api.snapshots.state().inForce?.revision.id;
    if (revision === undefined) throw this.refuse(503, 'no revision is in force yet');
    const located = await runInSlices(locatingRules(await this.readDocumentsNow()));
    if (domain === undefined) {
      const sought = search?.toLowerCase() ?? '';
      const all = [...located].filter(([name]) => name.toLowerCase().includes(sought));
      const domains: DomainsJson['domains'] = [];
      for (const [name, rules] of all.slice(offset, offset + limit)) {
        domains.push({ domain: name, rules: await runInSlices(countingRules(rules)) });
      }
      return { revision, total: all.length, domains };
    }
    const rules = located.get(domain);
    if (rules === undefined) {
      throw new HttpError(404, { detail: toUnknownDomainText(domain, located.keys()) });
    }
    const asked = { text: search ?? '', offset, limit };
    const { total, found } = await runInSlices(findingRules(domain, rules, asked));
    const page = { revision, domain, total };
    if (found.length <= fewRows) return toLongAnswer({ ...page, rules: found.map(toRow) });
    // All rows of many pages at once would need a lot of memory.
    return streamJson({ ...page, rules: toRows(found) });
  }
}

function* toRows(found: readonly ListedRule[]): Generator<RuleRow, void> {
  for (const rule of found) yield toRow(rule);
}
