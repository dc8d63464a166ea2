// `/top`: the values that are limited most, and what the rules count, of all workers that report.
import Type from 'typebox';
import { type Fields, op } from '../../../shared/router/index.ts';
import { AdminController } from '../admin-controller.ts';
import { createFindLift } from '../lifted.ts';
import { askingPeer } from '../peer-json.ts';
import { isInShadowMode, ruleOwners } from '../rule-owners.ts';
import { mergeTop, topJson, toTopJson, withLifts } from '../top-json.ts';

/** Of each control plane, so that the sum of several is exact enough. */
const mostOfEach = 200;

export class Default extends AdminController {
  static readonly GET = op({
    summary: 'The values that are limited most, and the rules with the most hits over limit',
    description:
      'Of the last one or two minutes. Counts have bounds: each worker keeps 1,000 values.',
    query: Type.Object({
      domain: Type.Optional(Type.String({ maxLength: 1024, description: 'Of this domain alone' })),
      search: Type.Optional(
        Type.String({ maxLength: 200, description: 'Part of a domain, a rule or a value' }),
      ),
      limit: Type.Integer({
        default: 20,
        minimum: 1,
        maximum: mostOfEach,
        description: 'How many of each',
      }),
      peer: askingPeer,
    }),
    returns: { 200: topJson },
    failures: { 409: undefined },
  });

  async GET({ domain, search, limit, peer }: Fields<typeof Default.GET>) {
    const { fleet, peers, snapshots, clock } = this.api;
    const most = peers === undefined ? limit : mostOfEach;
    const query = new URLSearchParams({
      limit: `${mostOfEach}`,
      ...(domain !== undefined && { domain }),
      ...(search !== undefined && { search }),
    });
    const path = `/top?${query}`;
    const answers = this.askPeers(path, topJson, peer);
    const sought = search?.toLowerCase() ?? '';
    const isAsked = ({ rule }: { readonly rule: string }) =>
      (domain === undefined || rule.startsWith(`${domain}.`)) &&
      rule.toLowerCase().includes(sought);
    const owners = ruleOwners(snapshots.documents);
    const rules = fleet.rules().filter(isAsked);
    const workers = fleet.list().filter(({ figures }) => figures !== undefined).length;
    const own = toTopJson(
      await fleet.limited({ domain, search }, most),
      rules.map((rate) => ({ ...rate, shadowMode: isInShadowMode(owners.find(rate.rule)) })),
      workers,
      most,
    );
    const findLift = createFindLift(snapshots.documents, clock.wallMs());
    return withLifts(mergeTop(own, await answers, limit), findLift);
  }
}
