// Tests that no step of a change is long, however many limits change at once: decisions wait for the longest step. The
// operations of a step are counted, as its duration depends on whatever else the machine does.
import { Hash } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import { parseRuleDocument } from '../../shared/rules/document/document.ts';
import { applyAllowancesInSteps } from '../../shared/rules/problem/allowance.ts';
import { problemOf } from '../../shared/rules/problem/problem.ts';
import type {
  RateLimitBlock,
  RuleDescriptor,
  RuleDocument,
} from '../../shared/rules/rule-document.ts';
import { createRuleSetBuilder } from '../../shared/rules/rule-set.ts';
import { findParts, PartNumbers, splitDocument } from '../../shared/rules/thread/document-parts.ts';
import {
  createDocumentJoiner,
  type DocumentPiece,
  toDocumentPieces,
} from '../../shared/rules/thread/document-pieces.ts';
import { toResource } from '../../shared/rules/wire/resource.ts';
import type { AnyMessage } from '../../shared/wire/discovery-messages.ts';
import { loadProtos } from '../../shared/wire/protos.ts';
import { toAny } from '../../test/support/scripted-ads-server.ts';
import { fullSize } from '../counters/text-table.ts';
import { applyResources, type GoodResource, prepareResources } from './ads-resources.ts';

const { rateLimitConfig } = loadProtos();
/** The most calls of collections in one step: a change in a single step makes 20,000 and more. */
const mostCalls = 10_000;
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

function many<Item>(count: number, toItem: (at: number) => Item): Item[] {
  return Array.from({ length: count }, (_, at) => toItem(at));
}

const valued = (at: number): RuleDescriptor => ({ ...plain, value: `d0-${at}` });
const named = (at: number, more: Partial<RateLimitBlock> = {}): RuleDescriptor => ({
  ...valued(at),
  rateLimit: { ...(plain.rateLimit as RateLimitBlock), name: `n${at}`, ...more },
});
const count = 20_000;
/** A scattered order. */
const mixed = (at: number, count: number) => (at * 7_919) % count;
const ending = (at: number): RuleDescriptor => ({
  ...valued(at),
  untilMs: startMs + 1 + mixed(at, count),
});
const changes: Readonly<Record<string, () => RuleDocument[]>> = {
  '100,000 values of a key': () => [documentOf(many(100_000, valued))],
  'a key each': () => [documentOf(many(count, (at) => ({ ...plain, key: `k${at}`, value: '' })))],
  wildcards: () => [
    documentOf(many(count, (at) => ({ ...plain, value: `/${mixed(at, count)}/*` }))),
  ],
  'rules that end': () => [documentOf(many(count, ending))],
  'rules that end below others': () => [
    documentOf(
      many(count / 50, (at) => ({
        ...{ ...plain, key: `k${at}`, value: '' },
        descriptors: many(50, (below) => ending(50 * at + below)),
      })),
    ),
  ],
  'rules with names that others replace': () => [
    documentOf(many(count, (at) => named(at, { replaces: [{ name: 'n0', position: undefined }] }))),
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
  'many resources of one domain': () =>
    many(count / 20, (at) =>
      documentOf(
        many(20, (below) => valued(20 * at + below)),
        `r${at}`,
        'shop',
      ),
    ),
  'a domain each for one limit': () =>
    many(count / 2, (at) => documentOf(many(1, valued), `shop_${at}`)),
  'two domains whose counters might meet': () => [
    documentOf(many(count, (at) => ({ ...valued(at), key: at < 20 ? `eu_x${at}` : 'us' }))),
    documentOf(many(count, valued), 'shop_eu'),
  ],
};
const refused = {
  'ends that are too far': () => [
    documentOf(many(count, (at) => ({ ...valued(at), untilMs: startMs + 4e10 }))),
  ],
};

/** The collection calls of a step, the bytes that it hashes, and the size of the largest map. */
interface Counted {
  calls: number;
  largestMap: number;
}

/** The counts of the longest step, while `run` executes the steps of its work. */
function countCalls(
  run: (doSteps: <Result>(work: Iterator<unknown, Result>) => Result) => void,
): Counted {
  const most: Counted = { calls: 0, largestMap: 0 };
  const originals: (() => void)[] = [];
  let calls = 0;
  function watch<Of extends object>(
    of: Of,
    names: readonly (keyof Of)[],
    costOf: (self: Of, given: unknown) => number,
  ) {
    for (const name of names) {
      const original = of[name] as (...given: unknown[]) => unknown;
      originals.push(() => Object.assign(of, { [name]: original }));
      const watched = function (this: Of, ...given: unknown[]) {
        calls += costOf(this, given[0]);
        return original.apply(this, given);
      };
      Object.assign(of, { [name]: watched });
    }
  }
  const costOfMap = ({ size }: { readonly size: number }) => {
    most.largestMap = Math.max(most.largestMap, size);
    return 1;
  };
  watch(Map.prototype, ['get', 'has', 'set', 'delete'], costOfMap);
  watch(Set.prototype, ['has', 'add', 'delete'], costOfMap);
  watch(Array.prototype, ['push'], () => 1);
  watch(Object.getPrototypeOf([].values()) as ArrayIterator<unknown>, ['next'], () => 1);
  watch(Array.prototype, ['sort', 'map', 'filter', 'flatMap'], ({ length }) => length);
  watch(Hash.prototype, ['update'], (_, given) => (given as string | Buffer).length / 64);
  try {
    run((work) => {
      for (;;) {
        calls = 0;
        const step = work.next();
        most.calls = Math.max(most.calls, calls);
        if (step.done) return step.value;
      }
    });
  } finally {
    for (const restore of originals) restore();
  }
  return most;
}

/** The pieces that the parsing thread would send. */
function toPieces(document: RuleDocument): DocumentPiece[] {
  return [...toDocumentPieces(document)].map((piece) => structuredClone(piece));
}

function* join(pieces: readonly DocumentPiece[]): Generator<void, RuleDocument> {
  const joiner = createDocumentJoiner();
  for (const piece of pieces) {
    yield;
    joiner.receive(piece);
  }
  return joiner.toDocument();
}

function checkSteps(
  t: ExecutionContext,
  documents: readonly RuleDocument[],
  isRefused = false,
): void {
  const resources: AnyMessage[] = documents.map((document) =>
    toAny(toResource(document, { withExtensions: true }).message),
  );
  const pieces = documents.map(toPieces);
  const builder = createRuleSetBuilder({
    mergeDomains: true,
    sanitizeMetricDots: false,
    fixedWindowsOnly: true,
    warnsOfStops: true,
  });
  const most = countCalls((step) => {
    const prepared = step(prepareResources(resources));
    const parsed = new Map(
      resources.map((any, at) => {
        const document = step(join(pieces[at] ?? []));
        const { file } = document;
        const problems = [problemOf('warning', 'other', file, 'not as it should be')];
        return [any, { ok: true, named: { name: file }, document, problems } as const];
      }),
    );
    const deps = { decode: rateLimitConfig.deserialize, builder };
    const intake = step(
      applyResources(deps, resources, new Map<string, GoodResource>(), startMs, {
        ...prepared,
        parsed,
      }),
    );
    t.is(intake.problems.length > 0, isRefused);
    if (isRefused) return;
    t.not(intake.ruleSet, undefined);
    // Some of its rules end, and then one of the resources is removed.
    const inForce = [...intake.inForce.values()].map(({ document }) => document);
    t.true(step(builder.build(inForce, startMs + count / 2)).ok);
    const left = step(applyResources(deps, resources.slice(1), intake.inForce, startMs));
    t.is(left.inForce.size, resources.length - 1);
    // The parts that need not be sent again to the parsing thread and the processes.
    const names = new PartNumbers();
    for (const document of inForce) {
      const known = new Set([...splitDocument(document)].map((part) => names.nameOf(part)));
      step(toDocumentPieces(document, { names, known }));
      step(findParts(document));
    }
  });
  t.log(most);
  t.true(most.calls <= mostCalls, `${most.calls} calls in a step`);
  t.true(most.largestMap < 2 * fullSize, `a map of ${most.largestMap}`);
}

for (const [what, toDocuments] of Object.entries(changes)) {
  test.serial(`no step of a change is long: ${what}`, (t) => checkSteps(t, toDocuments()));
}

for (const [what, toDocuments] of Object.entries(refused)) {
  test.serial(`no step of a refusal is long: ${what}`, (t) => checkSteps(t, toDocuments(), true));
}

test('comments that allow warnings are read in steps, line by line and file by file', (t) => {
  const text = `# ratelane: allow other\n${'  - key: a\n'.repeat(count)}`;
  const stepsOf = (files: readonly string[]) => {
    const named = files.map((each, at) => ({ path: `${at}.yaml`, text: each }));
    return [...applyAllowancesInSteps([], named)].length;
  };
  t.true(stepsOf([text]) >= 20);
  t.true(stepsOf(many(100, () => 'domain: d\n')) >= 100);
});
