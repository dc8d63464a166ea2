// `/traffic`: what the workers decided in the last minutes, and what the rules counted.
import Type from 'typebox';
import { type Fields, op } from '../../../shared/router/op.ts';
import { AdminController } from '../admin-controller.ts';
import {
  historyJson,
  mergeHistories,
  mergeSeries,
  ruleSeriesJson,
  toHistoryJson,
} from '../history-json.ts';
import { askingPeer } from '../peer-json.ts';
import { nameRules, ruleOwners } from '../rule-owners.ts';

export class Default extends AdminController {
  static readonly GET = op({
    summary: 'What all workers decided in the last 15 minutes, in slots of five seconds',
    query: Type.Object({ peer: askingPeer }),
    returns: { 200: historyJson },
    failures: { 409: undefined },
  });

  async GET({ peer }: Fields<typeof Default.GET>) {
    const answers = await this.askPeers('/traffic', historyJson, peer);
    const own = toHistoryJson(this.api.fleet.history());
    return mergeHistories([own, ...answers.flatMap(({ value }) => value ?? [])]);
  }

  static readonly GET_rules = op({
    summary: 'Hits per second of the rules of a domain in each slot of the last minute',
    query: Type.Object({
      domain: Type.String({ minLength: 1, maxLength: 1024 }),
      peer: askingPeer,
    }),
    returns: { 200: ruleSeriesJson },
    failures: { 409: undefined },
  });

  async GET_rules({ domain, peer }: Fields<typeof Default.GET_rules>) {
    const path = `/traffic/rules?domain=${encodeURIComponent(domain)}`;
    const answers = await this.askPeers(path, ruleSeriesJson, peer);
    const known = [this.api.fleet.ruleSeries(domain), ...answers.map(({ value }) => value?.rules)];
    const named = nameRules(
      known.flatMap((each) => each ?? []),
      ruleOwners(this.api.snapshots.documents),
    );
    return { rules: mergeSeries(named) };
  }
}
