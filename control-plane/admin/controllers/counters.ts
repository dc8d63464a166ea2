// `/counters`: how far given descriptors are in their limits, as the workers' stores have it.
import Type from 'typebox';
import { type Fields, op } from '../../../shared/router/op.ts';
import { AdminController } from '../admin-controller.ts';
import { countersAsked, countersJson } from '../counters-json.ts';

export class Default extends AdminController {
  static readonly POST = op({
    summary: 'How far descriptors are in their limits now',
    description: 'The workers of this control plane are asked, for at most 2 seconds.',
    body: Type.Object(countersAsked),
    returns: { 200: countersJson },
    failures: { 404: undefined, 503: undefined },
  });

  POST({ domain, descriptors, worker }: Fields<typeof Default.POST>) {
    return this.askCounters({ domain, descriptors, worker, reset: false });
  }
}
