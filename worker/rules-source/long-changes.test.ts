// However many limits change at once, no step of the change takes long: decisions wait for the longest (beside what a
// garbage collection takes). Where a step was long, all are timed again, and the best time counts, since others may have
// the processor.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import test, { type ExecutionContext } from 'ava';
import { parseRuleDocument } from '../../shared/rules/document/document.ts';
import type {
  RateLimitBlock,
  RuleDescriptor,
  RuleDocument,
} from '../../shared/rules/rule-document.ts';
import { createRuleSetBuilder } from '../../shared/rules/rule-set.ts';
import {
  createDocumentJoiner,
  type DocumentPiece,
  toDocumentPieces,
} from '../../shared/rules/thread/document-pieces.ts';
import { toResource } from '../../shared/rules/wire/resource.ts';
import type { AnyMessage } from '../../shared/wire/discovery-messages.ts';
import { loadProtos } from '../../shared/wire/protos.ts';
import { toAny } from '../../test/support/scripted-ads-server.ts';
import { type GoodResource, prepareResources, takeResources } from './ads-resources.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as NonNullable<typeof globalThis.gc>;
const { rateLimitConfig } = loadProtos();
const longestMs = 3;
const mostRepeats = 10;
const startMs = Date.parse('2026-11-24T17:00:00Z');

/** The only descriptor of a document with this text. */
function descriptorOf(text: string): RuleDescriptor {
  const { document, problems } = parseRuleDocument(`domain: d\ndescriptors:\n  - ${text}\n`, 'd');
  const [descriptor] = document?.descriptors ?? [];
  if (descriptor === undefined) throw new Error(problems[0]?.message);
  return { ...descriptor, position: undefined };
}

const plain = descriptorOf(
  '{key: user, value: v, rate_limit: {unit: minute, requests_per_unit: 5}}',
);
const listed = descriptorOf(
  '{key: user, value: v, rate_limits: [{unit: minute, requests_per_unit: 5}, {unit: day, requests_per_unit: 100}]}',
);

function documentOf(
  descriptors: readonly RuleDescriptor[],
  name = 'shop',
  domain = name,
): RuleDocument {
  return { file: name, domain, position: undefined, descriptors };
}

function many(count: number, toDescriptor: (at: number) => RuleDescriptor): RuleDescriptor[] {
  return Array.from({ length: count }, (_, at) => toDescriptor(at));
}

const valued = (at: number): RuleDescriptor => ({ ...plain, value: `d0-${at}` });
const named = (at: number, more: Partial<RateLimitBlock> = {}): RuleDescriptor => ({
  ...valued(at),
  rateLimit: { ...(plain.rateLimit as RateLimitBlock), name: `n${at}`, ...more },
});
/** In no order. */
const mixed = (at: number, count: number) => (at * 7_919) % count;

const count = 50_000;
const changes: Readonly<Record<string, () => RuleDocument[]>> = {
  '100,000 values of a key': () => [documentOf(many(100_000, valued))],
  'a key each': () => [documentOf(many(count, (at) => ({ ...plain, key: `k${at}`, value: '' })))],
  wildcards: () => [
    documentOf(many(count, (at) => ({ ...plain, value: `/${mixed(at, count)}/*` }))),
  ],
  'rules that end': () => [
    documentOf(many(count, (at) => ({ ...valued(at), untilMs: startMs + 1 + mixed(at, count) }))),
  ],
  'rules with names': () => [
    documentOf([
      ...many(count, (at) => named(at)),
      named(count, { replaces: [{ name: 'x1', position: undefined }] }),
    ]),
  ],
  'rules below another': () => [
    documentOf([{ ...plain, key: 'top', value: '', descriptors: many(count, valued) }]),
  ],
  'lists of limits': () => [documentOf(many(count, (at) => ({ ...listed, value: `d0-${at}` })))],
  'two resources of one domain': () =>
    [0, 1].map((half) =>
      documentOf(
        many(count / 2, (at) => valued(2 * at + half)),
        `r${half}`,
        'shop',
      ),
    ),
  'a domain each for ten limits': () =>
    Array.from({ length: count / 10 }, (_, at) => documentOf(many(10, valued), `shop_${at}`)),
};

/** The times of its steps, in milliseconds. */
function timeSteps<Result>(work: Iterator<void, Result>, times: number[]): Result {
  let sinceCollected = performance.now();
  for (;;) {
    const before = performance.now();
    const cpuBefore = process.threadCpuUsage();
    const step = work.next();
    const { user, system } = process.threadCpuUsage(cpuBefore);
    // The one has what others did meanwhile, the other is counted in ticks.
    times.push(Math.min(performance.now() - before, (user + system) / 1000));
    if (step.done) return step.value;
    if (performance.now() - sinceCollected < 1) continue;
    // What V8 collects by itself falls into no step.
    collect({ type: 'minor' });
    sinceCollected = performance.now();
  }
}

/** As the thread that parses sends it. */
function toPieces(document: RuleDocument): DocumentPiece[] {
  return [...toDocumentPieces(document)].map((piece) => structuredClone(piece));
}

function* join(pieces: readonly DocumentPiece[]): Generator<void, RuleDocument> {
  const joiner = createDocumentJoiner();
  for (const piece of pieces) {
    yield;
    joiner.take(piece);
  }
  return joiner.toDocument();
}

function checkSteps(t: ExecutionContext, documents: readonly RuleDocument[]): void {
  const resources: AnyMessage[] = documents.map((document) =>
    toAny(toResource(document, { withExtensions: true }).message),
  );
  const pieces = documents.map(toPieces);
  const builder = createRuleSetBuilder({ mergeDomains: true, sanitizeMetricDots: false });
  let best: number[] = [];
  let longest = Number.POSITIVE_INFINITY;
  for (let repeat = 0; repeat < mostRepeats && longest > longestMs; repeat++) {
    const times: number[] = [];
    const prepared = timeSteps(prepareResources(resources), times);
    const parsed = new Map(
      resources.map((any, at) => {
        const document = timeSteps(join(pieces[at] ?? []), times);
        return [
          any,
          { ok: true, named: { name: documents[at]?.file }, document, problems: [] } as const,
        ];
      }),
    );
    const before = new Map<string, GoodResource>();
    const deps = { decode: rateLimitConfig.deserialize, builder };
    const intake = timeSteps(
      takeResources(deps, resources, before, startMs, { ...prepared, parsed }),
      times,
    );
    t.is(intake.problems.length, 0);
    t.not(intake.ruleSet, undefined);
    best = times.map((time, at) => Math.min(time, best[at] ?? time));
    longest = Math.max(...best);
  }
  t.log(`${best.length} steps, the longest ${longest.toFixed(2)} ms`);
  t.true(longest <= longestMs, `step ${best.indexOf(longest)}: ${longest} ms`);
}

for (const [what, toDocuments] of Object.entries(changes)) {
  test.serial(`no step of a change is long: ${what}`, (t) => checkSteps(t, toDocuments()));
}
