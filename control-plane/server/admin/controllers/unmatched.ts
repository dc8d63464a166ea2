// `/unmatched`: descriptors that matched no rule, and the nearest rule of each.
import Type from 'typebox';
import { runInSlices } from '../../../../shared/in-slices.ts';
import { type Fields, op } from '../../../../shared/router/index.ts';
import { AdminController } from '../admin-controller.ts';
import { askingPeer } from '../joined.ts';
import { locatingRules } from '../rule-rows.ts';
import { explainSamples, unmatchedJson } from '../unmatched-json.ts';

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
    const { values } = await this.askPeers('/unmatched', unmatchedJson, peer);
    const located = await runInSlices(locatingRules(this.api.snapshots.documents));
    const all = [this.api.fleet.unmatched(), ...values.map((value) => value.samples)];
    const samples = await runInSlices(explainSamples(all, located));
    // The control plane that asks its peers takes the first of each.
    if (peer !== undefined) return { samples };
    return { samples: samples.sort((a, b) => b.lastAt.localeCompare(a.lastAt)) };
  }
}
