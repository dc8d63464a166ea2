// Tests what is in force after responses of a management server; ads-resources.txt has cases as lines for review:
// the resources of one response after another, and what each leads to. `REWRITE=1` rewrites that.
import test from 'ava';
import fc from 'fast-check';
import { runAtOnce } from '../../shared/in-slices.ts';
import { formatProblems } from '../../shared/rules/problem/problem-text.ts';
import { createRuleSetBuilder } from '../../shared/rules/rule-set.ts';
import type { AnyMessage } from '../../shared/wire/discovery-messages.ts';
import { loadProtos } from '../../shared/wire/protos.ts';
import type { RateLimitConfigMessage } from '../../shared/wire/rate-limit-config-message.ts';
import { testLines } from '../../test/support/reviewed-lines.ts';
import {
  applyResources,
  findReplaced,
  type Intake,
  prepareResources,
  type ResourcesInForce,
} from './ads-resources.ts';

const { rateLimitConfig } = loadProtos();
const type_url = 'type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig';

function any(config: RateLimitConfigMessage): AnyMessage {
  return { type_url, value: rateLimitConfig.serialize(config) };
}

/** A resource that limits `domain` to `limit` per second; without a limit, an invalid one. */
function resource(name: string, domain: string, limit?: number): AnyMessage {
  const rateLimit = { unit: limit === undefined ? 0 : 1, requestsPerUnit: limit ?? 1 };
  return any({ name, domain, descriptors: [{ key: 'k', rateLimit }] });
}

const unreadable: AnyMessage = { type_url, value: Buffer.from([0x0f]) };

function apply(
  resources: readonly AnyMessage[],
  before: ResourcesInForce = new Map(),
  mergeDomains = false,
): Intake {
  const decode = (bytes: Buffer) => rateLimitConfig.deserialize(bytes);
  const builder = createRuleSetBuilder({ mergeDomains, sanitizeMetricDots: false });
  return runAtOnce(applyResources({ decode, builder }, resources, before));
}

/** `NAME:DOMAIN=LIMIT`, also with `.KEY` behind the domain; without a limit an invalid one, `?` an unreadable one, and
 * behind `TYPE TYPE_URL ` one of another type. */
function toResource(text: string): AnyMessage {
  if (text === '?') return unreadable;
  const [, type, name = '', domain = '', key = 'k', limit] =
    /^(?:TYPE (\S+) )?(.*):(\w+)(?:\.(\w+))?(?:=(\d+))?$/.exec(text) ?? [];
  const rateLimit = { unit: limit ? 1 : 0, requestsPerUnit: Number(limit ?? 1) };
  return {
    ...any({ name, domain, descriptors: [{ key, rateLimit }] }),
    ...(type && { type_url: type }),
  };
}

/** The resources in force as `NAME:DOMAIN.KEY=LIMIT`, the limits of the new rules, which earlier versions stay, and the
 * problems. */
function toText(intake: Intake): string {
  const { inForce, ruleSet, retained } = intake;
  const shown = [...inForce].map(
    ([
      name,
      {
        document: { domain, descriptors },
      },
    ]) => {
      const [first] = descriptors;
      return `${name}:${domain}.${first?.key}=${first?.rateLimit?.requestsPerUnit}`;
    },
  );
  const domains = [...(ruleSet?.domains.keys() ?? [])].sort();
  const limits = domains.map((domain) => `${domain}=${limitOf(intake, domain)}`);
  const problems = formatProblems(intake.problems)
    .replaceAll(/\n +hint: .*/g, '')
    .replace(/(?<=RateLimitConfig \().+?(?=\)$)/m, '...');
  return [
    shown.sort().join(', ') || 'nothing',
    ruleSet ? `rules ${limits.join(', ')}` : 'the rules stay',
    ...(retained.length > 0 ? [`${[...retained].sort().join(', ')} stay`] : []),
    ...(problems === '' ? [] : problems.split('\n')),
  ].join('; ');
}

testLines(test, new URL('ads-resources.txt', import.meta.url), (given) => {
  const [, merging, responses = ''] = /^(\(merging\) )?(.*)$/.exec(given) ?? [];
  let inForce: ResourcesInForce = new Map();
  return responses
    .split(' > ')
    .map((response) => {
      const resources = response.split(', ').filter(Boolean).map(toResource);
      const intake = apply(resources, inForce, merging !== undefined);
      inForce = intake.inForce;
      return toText(intake);
    })
    .join(' > ');
});

test('the resource that an unreadable one presumably replaces is found by the name at the start of its bytes', (t) => {
  const long = 'n'.repeat(300);
  const names = ['a', long, ''];
  const { inForce } = apply(names.map((name, at) => resource(name, `d${at}`, 1)));
  for (const [at, name] of names.entries()) {
    const { value } = resource(name, `d${at}`, 2);
    t.is(value && findReplaced(value, inForce)?.domain, `d${at}`);
  }
  const others = [
    resource('b', 'd0', 1).value,
    Buffer.alloc(0),
    Buffer.from([0x0a]),
    Buffer.from([0x0a, 255, 255, 3]),
  ];
  for (const bytes of others) t.is(bytes && findReplaced(bytes, inForce), undefined);
});

function limitOf({ ruleSet }: Intake, domain: string): number | undefined {
  return ruleSet?.domains.get(domain)?.match([{ key: 'k', value: 'v' }])?.limit.requestsPerUnit;
}

test('a resource that did not change is neither decoded nor built again', (t) => {
  const decoded: Buffer[] = [];
  const builder = createRuleSetBuilder({ mergeDomains: false, sanitizeMetricDots: false });
  const decode = (bytes: Buffer) => {
    decoded.push(bytes);
    return rateLimitConfig.deserialize(bytes);
  };
  const applyNext = (resources: readonly AnyMessage[], before: ResourcesInForce = new Map()) =>
    runAtOnce(applyResources({ decode, builder }, resources, before));
  const first = applyNext([resource('a', 'da', 1), resource('b', 'db', 2)]);
  t.is(decoded.length, 2);
  const second = applyNext([resource('b', 'db', 3), resource('a', 'da', 1)], first.inForce);
  t.is(decoded.length, 3, 'one has changed');
  t.is(second.ruleSet?.domains.get('da'), first.ruleSet?.domains.get('da'), 'the same rules');
  t.not(second.ruleSet?.domains.get('db'), first.ruleSet?.domains.get('db'));
  t.is(limitOf(second, 'db'), 3);
});

test('a resource that is sent again unchanged is in force again', (t) => {
  const { inForce } = apply([resource('a', 'da', 1)]);
  const again = apply([resource('a', 'da', 1)], inForce);
  t.is(limitOf(again, 'da'), 1);
  t.is(again.inForce.get('a'), inForce.get('a'));
});

test('after any responses, the resources in force are consistent, and each was good', (t) => {
  const anyResource = fc.record({
    name: fc.constantFrom('a', 'b', 'c', ''),
    domain: fc.constantFrom('d1', 'd2', 'd3'),
    limit: fc.option(fc.nat({ max: 3 }), { nil: undefined, freq: 3 }),
    isReadable: fc.boolean(),
  });
  fc.assert(
    fc.property(
      fc.array(fc.array(anyResource, { maxLength: 4 }), { maxLength: 5 }),
      (responses) => {
        let inForce: ResourcesInForce = new Map();
        for (const response of responses) {
          const resources = response.map(({ name, domain, limit, isReadable }) =>
            isReadable ? resource(name, domain, limit) : unreadable,
          );
          const intake = apply(resources, inForce);
          const domains = [...intake.inForce.values()].map(({ document }) => document.domain);
          t.is(new Set(domains).size, domains.length);
          if (intake.ruleSet !== undefined) t.is(intake.ruleSet.domains.size, domains.length);
          if (intake.problems.length === 0) t.is(intake.inForce.size, resources.length);
          if (intake.ruleSet === undefined) t.true(intake.problems.length > 0);
          inForce = intake.inForce;
        }
      },
    ),
  );
});

test('only a few bytes of a large resource are hashed between two yields', (t) => {
  const value = Buffer.alloc(8 * 1024 * 1024);
  const work = prepareResources([{ type_url, value }]);
  let yields = 0;
  while (!work.next().done) yields++;
  t.true(yields >= 32);
});
