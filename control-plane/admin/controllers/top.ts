// `/top`: the values that are limited most, and what the rules count, of all workers that report.
import Type from 'typebox';
import { type Fields, op } from '../../../shared/router/op.ts';
import { AdminController } from '../admin-controller.ts';
import { askingPeer } from '../peer-json.ts';
import { mergeTop, topJson, toTopJson } from '../top-json.ts';

/** Of each control plane, so that the sum of several is exact enough. */
const mostOfEach = 200;

export class Default extends AdminController {
  static readonly GET = op({
    summary: 'The values that are limited most, and the rules with the most hits over limit',
    description:
      'Of the last one or two minutes. Counts have bounds: each worker keeps 1,000 values.',
    query: Type.Object({
      domain: Type.Optional(Type.String({ maxLength: 1024, description: 'Of this domain alone' })),
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

  async GET({ domain, limit, peer }: Fields<typeof Default.GET>) {
    const { fleet, peers } = this.api;
    const most = peers === undefined ? limit : mostOfEach;
    const query = domain === undefined ? '' : `&domain=${encodeURIComponent(domain)}`;
    const path = `/top?limit=${mostOfEach}${query}`;
    const answers = this.askPeers(path, topJson, peer);
    const isAsked = ({ rule }: { readonly rule: string }) =>
      domain === undefined || rule.startsWith(`${domain}.`);
    const workers = fleet.list().filter(({ figures }) => figures !== undefined).length;
    const own = toTopJson(
      await fleet.limited(domain, most),
      fleet.rules().filter(isAsked),
      workers,
      most,
    );
    return mergeTop(own, await answers, limit);
  }
}
