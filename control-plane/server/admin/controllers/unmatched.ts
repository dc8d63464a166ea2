// `/unmatched`: descriptors that matched no rule, and the nearest rule of each.
import Type from 'typebox';
import { runInSlices } from '../../../../shared/in-slices.ts';
import { type Fields, op } from '../../../../shared/router/index.ts';
import { AdminController } from '../admin-controller.ts';
import { askingPeer } from '../peer-json.ts';
import { placingRules } from '../rule-rows.ts';
import { explainSamples, mergeUnmatched, unmatchedJson } from '../unmatched-json.ts';

export class Default extends AdminController {
  static readonly GET = op({
    summary: 'Samples of descriptors that match no rule, and why',
    description:
      'Those that the workers report, the last ones first; at most 50, as many of each worker where there are more.',
    query: Type.Object({
      peer: askingPeer,
    }),
    returns: { 200: unmatchedJson },
    failures: { 409: undefined, 503: undefined },
  });

  async GET({ peer }: Fields<typeof Default.GET>) {
    const answers = await this.askPeers('/unmatched', unmatchedJson, peer);
    const placed = await runInSlices(placingRules(this.api.snapshots.documents));
    const own = await runInSlices(explainSamples(this.api.fleet.unmatched(), placed));
    // The control plane that asks its peers takes an equal number from each.
    if (peer !== undefined) return own;
    return mergeUnmatched([own, ...answers.flatMap(({ value }) => value ?? [])]);
  }
}
