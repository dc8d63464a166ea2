// `/counters`: how much of the limits of given descriptors is used, according to the workers' stores.
import Type from 'typebox';
import { type Fields, op } from '../../../../shared/router/index.ts';
import { countersAsked, countersJson, countersPeer } from '../../fleet/counter-answers.ts';
import { AdminController } from '../admin-controller.ts';

export class Default extends AdminController {
  static readonly POST = op({
    summary: 'How far descriptors are in their limits now',
    description:
      'The workers of this control plane and of its peers are asked, for at most 2 seconds: each that counts by itself, and two of those that count together.',
    query: countersPeer,
    body: Type.Object(countersAsked),
    returns: { 200: countersJson },
    failures: { 404: undefined, 409: undefined, 503: undefined },
  });

  POST({ peer, ...asked }: Fields<typeof Default.POST>) {
    return this.askCounters('/counters', asked, peer);
  }
}
