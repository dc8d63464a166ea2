// Receives the reports of this control plane's workers over their links (proto/ratelane/fleet/v1/fleet.proto). Nothing
// here decides what a worker is served, except that rollouts are judged by the counts of tally.ts per instance, never
// by a worker's counts since its start.

import { randomUUID } from 'node:crypto';
import type { Clock } from '../../../shared/clock.ts';
import { grpcStatus } from '../../../shared/grpc/status.ts';
import { runInSlices } from '../../../shared/in-slices.ts';
import type { Log } from '../../../shared/log.ts';
import { owned } from '../../../shared/owned-text.ts';
import { createRepeatedLog } from '../../../shared/repeated-log.ts';
import { escapeText } from '../../../shared/rules/problem/escaped-text.ts';
import { toExcerpt } from '../../../shared/text-excerpt.ts';
import type { FleetLink } from '../../../shared/wire/fleet.ts';
import type { HelloMessage, ReportMessage } from '../../../shared/wire/fleet-messages.ts';
import type { CallHandler, GrpcCall } from '../call-handler.ts';
import type { OwnCounters } from './counter-answers.ts';
import { type AskedWorker, Counters, type CountersQuestion } from './counters.ts';
import { OpenLink } from './fleet-link.ts';
import {
  contains,
  type LimitedList,
  type LimitedPeriod,
  LimitedSum,
  type LimitedValue,
  toLimitedList,
  toLimitedPeriod,
  toTextStart,
} from './limited-values.ts';
import {
  maxCountedRules,
  maxCountedRulesOfWorker,
  maxLimitedBytes,
  maxLimitedBytesOfWorker,
  maxSharedNames,
  staleMs,
} from './limits.ts';
import { type DomainSeries, type RuleRate, RuleRates, type SeriesSpan } from './rule-rates.ts';
import { type Counted, Tally } from './tally.ts';
import type { TrafficHistory, TrafficSlot } from './traffic-history.ts';
import { type UnmatchedSample, UnmatchedSamples } from './unmatched-samples.ts';
import { toFigures, type WorkerFigures } from './worker-figures.ts';
import { toAlreadyConnected } from './worker-name.ts';

/** A worker with a link. */
export interface LinkedWorker {
  readonly hello: HelloMessage;
  /** `<host>:<port>`. */
  readonly address: string;
  /** Undefined before the worker's first report, and if its last report is too old. */
  readonly figures: WorkerFigures | undefined;
}

export interface Fleet {
  /** The path of the method. */
  readonly path: string;
  open(call: GrpcCall): CallHandler;
  /** The workers in order of arrival. */
  list(): readonly LinkedWorker[];
  /** The counts of links with a fresh report, by instance. The caller must check whether the instance has a stream of
   * rules here. */
  counted(): ReadonlyMap<string, Counted>;
  /** The most limited values of the last one or two minutes. */
  limited(wanted: WantedValues, most: number): Promise<LimitedList>;
  /** The rates of the last minute, unordered. */
  rules(): readonly RuleRate[];
  /** Series of the rules of one domain that had hits in the last minute, in slots that no report can add to any
   * more. */
  ruleSeries(domain: string, span: SeriesSpan): DomainSeries;
  /** The decisions of all workers together in the last hour, without the periods that no report covers. */
  history(): readonly TrafficSlot[];
  /** Descriptors that matched no rule: the newest sample of each link, then the second newest of each, and so on. */
  unmatched(): readonly UnmatchedSample[];
  /** Asks the reporting workers about counters; answered within 1.5 seconds, a reset with its readings within 3. */
  askCounters(question: CountersQuestion): Promise<OwnCounters>;
  /** Ends all links: the workers reconnect elsewhere. */
  stop(): void;
}

export interface WantedValues {
  /** Undefined: values of all domains. */
  readonly domain?: string | undefined;
  /** Part of a domain, a rule or a value; undefined: all values. */
  readonly search?: string | undefined;
}

export interface FleetDeps {
  readonly method: FleetLink;
  readonly history: TrafficHistory;
  readonly log: Log;
  readonly clock: Clock;
}

interface Member extends AskedWorker {
  readonly tally: Tally;
  figures: WorkerFigures | undefined;
  /** The current period and the previous one. */
  limited: LimitedPeriod | undefined;
  limitedBefore: LimitedPeriod | undefined;
}

const eventIntervalMs = 5_000;

export function createFleet({ method, history, log, clock }: FleetDeps): Fleet {
  /** The members by instance, in the order of arrival. */
  const members = new Map<string, Member>();
  const links = new Set<OpenLink>();
  const counters = new Counters(clock);
  const ruleRates = new RuleRates(clock);
  const unmatched = new UnmatchedSamples();
  const names = new SharedNames();
  /** Differs between two starts of this process. */
  const seriesPrefix = randomUUID();
  let seriesCount = 0;
  const events = createRepeatedLog({
    clock,
    write: log.warning,
    intervalMs: eventIntervalMs,
    again: 'in-time',
  });

  function isFresh({ figures }: Member): boolean {
    return figures !== undefined && clock.wallMs() - figures.atMs <= staleMs;
  }

  function addReport(member: Member, report: ReportMessage): void {
    const before = member.figures;
    const passed = member.tally.add(report, clock.monotonicMs());
    member.figures = toFigures(report, passed, clock.wallMs(), before?.store);
    if (before !== undefined) history.add(passed, report.seconds);
    ruleRates.add(member, report.rules, report.seconds);
    unmatched.add(member, report.unmatched, clock.wallMs());
    if (report.limited == null) return;
    // Half of a share for each of the two periods.
    const share = Math.min(maxLimitedBytesOfWorker, maxLimitedBytes / members.size);
    const limited = toLimitedPeriod(report.limited, share / 2);
    if (member.limited?.startMs !== limited.startMs) member.limitedBefore = member.limited;
    member.limited = limited;
  }

  return {
    path: method.path,
    open(call) {
      let member: Member | undefined;
      const leave = () => {
        if (member === undefined) return;
        members.delete(member.hello.instance);
        ruleRates.leave(member);
        unmatched.leave(member);
        member = undefined;
      };
      const link: OpenLink = new OpenLink(
        {
          method,
          clock,
          onHello(hello) {
            const { peerAddress: address } = call;
            const { instance, nodeId } = hello;
            const first = members.get(instance);
            if (first !== undefined) {
              const text = toAlreadyConnected(instance, first.hello.nodeId, first.address);
              reportEnd(text, hello);
              link.finish(grpcStatus.alreadyExists, text);
              return;
            }
            member = {
              hello,
              tally: new Tally({
                nodeId,
                newSeries: () => `${seriesPrefix}-${++seriesCount}`,
                mostRules: () => Math.min(maxCountedRulesOfWorker, maxCountedRules / members.size),
                toOwned: (name) => names.toOwned(name),
              }),
              address,
              get version() {
                return this.figures?.version ?? '';
              },
              send: (message) => link.send(message),
              figures: undefined,
              limited: undefined,
              limitedBefore: undefined,
            };
            members.set(instance, member);
          },
          onReport(report) {
            if (member !== undefined) addReport(member, report);
          },
          onAnswer(answer) {
            if (member !== undefined) counters.receive(member, answer);
          },
          onRefused(reason) {
            reportEnd(reason, member?.hello);
          },
          onFinish: leave,
          onClose() {
            links.delete(link);
            leave();
          },
        },
        call,
      );
      function reportEnd(reason: string, hello: HelloMessage | undefined): void {
        const who = hello === undefined ? '' : ` of worker '${nameOf(hello)}'`;
        events.report(
          `Fleet: the link${who} at ${call.peerAddress} was ended: ${escapeText(reason)}`,
        );
      }
      links.add(link);
      return link;
    },
    list: () =>
      [...members.values()].map((member) => ({
        hello: member.hello,
        address: member.address,
        figures: isFresh(member) ? member.figures : undefined,
      })),
    counted() {
      const byInstance = new Map<string, Counted>();
      for (const [instance, member] of members) {
        const { counted } = member.tally;
        if (counted !== undefined && isFresh(member)) byInstance.set(instance, counted);
      }
      return byInstance;
    },
    limited: (wanted, most) =>
      runInSlices(summingLimited([...members.values()], isFresh, wanted, most)),
    askCounters: (question) => counters.ask([...members.values()].filter(isFresh), question),
    rules: () => ruleRates.read(),
    ruleSeries: (domain, span) => ruleRates.readSeries(domain, span),
    history: () => history.read(),
    unmatched: () => unmatched.read(),
    stop() {
      for (const link of links) {
        link.finish(grpcStatus.unavailable, 'the control plane is stopping');
      }
      events.flush();
    },
  };
}

/** Sums the most limited values of the members that are fresh when their turn comes, in steps. */
function* summingLimited(
  members: readonly Member[],
  isFresh: (member: Member) => boolean,
  { domain, search }: WantedValues,
  most: number,
): Generator<void, LimitedList> {
  const sum = new LimitedSum();
  const start = domain === undefined ? '' : toTextStart(domain);
  const isAsked = ({ text }: LimitedValue) =>
    text.startsWith(start) && (search === undefined || contains(text, search));
  for (const member of members) {
    const { limited, limitedBefore } = member;
    if (limited === undefined || !isFresh(member)) continue;
    const list = toLimitedList(limited, limitedBefore);
    sum.add({ ...list, values: list.values.filter(isAsked) });
    yield;
  }
  return sum.read(most);
}

/** Most workers count the same rules: sharing one text per name makes them faster to find, and saves memory. */
class SharedNames {
  readonly #texts = new Map<string, string>();

  toOwned(name: string): string {
    const known = this.#texts.get(name);
    if (known !== undefined) return known;
    if (this.#texts.size >= maxSharedNames) this.#texts.clear();
    const text = owned(name);
    this.#texts.set(text, text);
    return text;
  }
}

function nameOf({ nodeId }: HelloMessage): string {
  return escapeText(toExcerpt(nodeId, 200));
}
