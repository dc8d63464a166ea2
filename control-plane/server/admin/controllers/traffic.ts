// `/traffic`: the decisions of the workers in the last hour, and the counts of the rules.
import Type from 'typebox';
import { runInSlices } from '../../../../shared/in-slices.ts';
import { type Fields, op } from '../../../../shared/router/index.ts';
import { AdminController } from '../admin-controller.ts';
import {
  historyJson,
  historySpan,
  joinSlots,
  ruleSeriesJson,
  sumSeries,
  toHistory,
  withOutcomes,
} from '../history-json.ts';
import { askingPeer } from '../joined.ts';
import { createIsOfDomain, findingRuleOwners, namingRules } from '../rule-owners.ts';

export class Default extends AdminController {
  static readonly GET = op({
    summary:
      'What all workers decided in the last 15 minutes or the last hour, without the time that no report covers, and what happened in that time',
    query: Type.Object({ span: historySpan, peer: askingPeer }),
    returns: { 200: historyJson },
    failures: { 409: undefined },
  });

  async GET({ span = '15m', peer }: Fields<typeof Default.GET>) {
    const { values } = await this.askPeers(`/traffic?span=${span}`, historyJson, peer);
    const { fleet, marks, clock } = this.api;
    const { outcomes } = this.api.rollout.memory();
    const known = { slots: fleet.history(), marks: withOutcomes(marks.read(), outcomes) };
    return toHistory(known, values, span, clock.wallMs());
  }

  static readonly GET_rules = op({
    summary:
      'Hits per second of the rules of a domain in each slot of five seconds of the last minute, or of a minute of the last quarter of an hour',
    query: Type.Object({
      domain: Type.String({ minLength: 1, maxLength: 1024 }),
      span: Type.Union([Type.Literal('minute'), Type.Literal('quarter')], { default: 'minute' }),
      peer: askingPeer,
    }),
    returns: { 200: ruleSeriesJson },
    failures: { 409: undefined },
  });

  async GET_rules({ domain, span, peer }: Fields<typeof Default.GET_rules>) {
    const path = `/traffic/rules?domain=${encodeURIComponent(domain)}&span=${span}`;
    const { values } = await this.askPeers(path, ruleSeriesJson, peer);
    const own = this.api.fleet.ruleSeries(domain, span);
    const known = [own, ...values].flatMap(({ rules }) => rules);
    const { documents } = this.api.snapshots;
    const isOfDomain = createIsOfDomain(domain, documents);
    const series = known.filter(({ rule }) => isOfDomain(rule));
    const owners = await runInSlices(findingRuleOwners(documents));
    const named = await runInSlices(namingRules(series, owners));
    return { rules: sumSeries(named), ...joinSlots(own, values) };
  }
}
