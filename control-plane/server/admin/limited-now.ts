// Reads from the workers of all control planes which values are limited now, and how much the rules count.

import { runInSlices } from '../../../shared/in-slices.ts';
import { findDocumentsAt } from '../../../shared/rules/rule-end.ts';
import type { RuleRate } from '../fleet/rule-rates.ts';
import type { PeerAnswer } from '../record/peers/peers.ts';
import type { AdminApi } from './admin-api.ts';
import { creatingFindLift } from './lifted.ts';
import { createIsOfDomain, findingRuleOwners } from './rule-owners.ts';
import { mergeTop, type TopJson, toTopJson, withLifts } from './top-json.ts';

/** How many values each control plane lists, so that sums over several are accurate enough. */
export const mostOfEach = 200;

export interface WantedTop {
  readonly domain?: string | undefined;
  /** Part of the name of a domain, a rule or a value. */
  readonly search?: string | undefined;
  /** The number of values and of rules. */
  readonly limit: number;
}

/** The path of the query to peers. */
export function toTopPath({ domain, search }: WantedTop): string {
  const query = new URLSearchParams({
    limit: `${mostOfEach}`,
    ...(domain !== undefined && { domain }),
    ...(search !== undefined && { search }),
  });
  return `/top?${query}`;
}

export async function readTop(
  { fleet, peers, snapshots, clock }: AdminApi,
  { domain, search, limit }: WantedTop,
  answers: Promise<readonly PeerAnswer<TopJson>[]>,
): Promise<TopJson> {
  const most = peers === undefined ? limit : mostOfEach;
  const sought = search?.toLowerCase() ?? '';
  const isOfDomain =
    domain === undefined ? () => true : createIsOfDomain(domain, snapshots.documents);
  const current = await runInSlices(findDocumentsAt(snapshots.documents, clock.wallMs()));
  const owners = await runInSlices(findingRuleOwners(current));
  const nameOf = ({ rule }: RuleRate) => owners.find(rule)?.rule ?? rule;
  const rates = fleet.rules().filter(({ rule }) => isOfDomain(rule));
  // Matches the rule's name, or a value in a metric key; each rule is listed with everything that it counts.
  const asked = new Set(
    rates
      .filter((rate) =>
        [rate.rule, nameOf(rate)].some((name) => name.toLowerCase().includes(sought)),
      )
      .map(nameOf),
  );
  const own = toTopJson(
    await fleet.limited({ domain, search }, most),
    rates.filter((rate) => asked.has(nameOf(rate))),
    owners,
    fleet.list().filter(({ figures }) => figures !== undefined).length,
    most,
  );
  const findLift = await runInSlices(creatingFindLift(snapshots.documents, clock.wallMs()));
  return withLifts(mergeTop(own, await answers, owners, limit), findLift);
}
