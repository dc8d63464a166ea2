import test from 'ava';
import fc from 'fast-check';
import { runAtOnce } from '../../shared/in-slices.ts';
import { formatProblems } from '../../shared/rules/problem/problem-text.ts';
import { createRuleSetBuilder } from '../../shared/rules/rule-set.ts';
import type { AnyMessage } from '../../shared/wire/discovery-messages.ts';
import { loadProtos } from '../../shared/wire/protos.ts';
import type { RateLimitConfigMessage } from '../../shared/wire/rate-limit-config-message.ts';
import {
  findReplaced,
  type Intake,
  prepareResources,
  type ResourcesInForce,
  takeResources,
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

function take(
  resources: readonly AnyMessage[],
  before: ResourcesInForce = new Map(),
  mergeDomains = false,
): Intake {
  const decode = (bytes: Buffer) => rateLimitConfig.deserialize(bytes);
  const builder = createRuleSetBuilder({ mergeDomains, sanitizeMetricDots: false });
  return runAtOnce(takeResources({ decode, builder }, resources, before));
}

/** The resources in force, as `name: domain=limit`. */
function shown({ inForce }: Intake): string {
  return [...inForce]
    .map(
      ([
        name,
        {
          document: { domain, descriptors },
        },
      ]) => `${name}: ${domain}=${descriptors[0]?.rateLimit?.requestsPerUnit}`,
    )
    .sort()
    .join(', ');
}

test('the resource that another presumably replaces is found by the name with which its bytes begin', (t) => {
  const long = 'n'.repeat(300);
  const names = ['a', long, ''];
  const { inForce } = take(names.map((name, at) => resource(name, `d${at}`, 1)));
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

function errorsOf({ problems }: Intake): string {
  return formatProblems(problems).replaceAll(/\n +hint: .*/g, '');
}

test('a resource that did not change is neither decoded nor built again', (t) => {
  const decoded: Buffer[] = [];
  const builder = createRuleSetBuilder({ mergeDomains: false, sanitizeMetricDots: false });
  const decode = (bytes: Buffer) => {
    decoded.push(bytes);
    return rateLimitConfig.deserialize(bytes);
  };
  const takeNext = (resources: readonly AnyMessage[], before: ResourcesInForce = new Map()) =>
    runAtOnce(takeResources({ decode, builder }, resources, before));
  const first = takeNext([resource('a', 'da', 1), resource('b', 'db', 2)]);
  t.is(decoded.length, 2);
  const second = takeNext([resource('b', 'db', 3), resource('a', 'da', 1)], first.inForce);
  t.is(decoded.length, 3, 'one has changed');
  t.is(second.ruleSet?.domains.get('da'), first.ruleSet?.domains.get('da'), 'the same rules');
  t.not(second.ruleSet?.domains.get('db'), first.ruleSet?.domains.get('db'));
  t.is(limitOf(second, 'db'), 3);
});

test('good resources replace all earlier ones', (t) => {
  const first = take([resource('a', 'da', 1), resource('b', 'db', 2)]);
  t.is(shown(first), 'a: da=1, b: db=2');
  t.is(limitOf(first, 'db'), 2);
  const second = take([resource('c', 'dc', 3), resource('b', 'db', 4)], first.inForce);
  t.is(shown(second), 'b: db=4, c: dc=3');
  t.is(limitOf(second, 'da'), undefined);
  t.is(limitOf(second, 'db'), 4);
  t.deepEqual([second.problems, second.kept], [[], []]);
});

test('an empty response leaves no rules', (t) => {
  const { inForce } = take([resource('a', 'da', 1)]);
  const empty = take([], inForce);
  t.is(shown(empty), '');
  t.is(empty.ruleSet?.domains.size, 0);
  t.deepEqual(empty.problems, []);
});

test('a resource that is sent again unchanged is in force again', (t) => {
  const { inForce } = take([resource('a', 'da', 1)]);
  const again = take([resource('a', 'da', 1)], inForce);
  t.is(limitOf(again, 'da'), 1);
  t.is(again.inForce.get('a'), inForce.get('a'));
});

// Proof of migrating.md: A bad resource of a management server keeps its last good version, and the others of
// its response take effect; the response is refused all the same
// Proof of SECURITY.md: is trusted for the rules; an invalid resource leaves its last good version in force
test('a bad resource keeps its last good version while the others take effect', (t) => {
  const first = take([resource('a', 'da', 1), resource('b', 'db', 1), resource('c', 'dc', 1)]);
  const second = take([resource('a', 'da', 2), resource('b', 'db')], first.inForce);
  t.is(shown(second), 'a: da=2, b: db=1');
  t.is(limitOf(second, 'db'), 1);
  t.deepEqual(second.kept, ['b']);
  t.is(
    errorsOf(second),
    "b: error: descriptors[0].rate_limit.unit: invalid rate limit unit 'UNKNOWN'",
  );
});

test('a bad resource that was never good is left out', (t) => {
  const intake = take([resource('a', 'da', 1), resource('b', 'db')]);
  t.is(shown(intake), 'a: da=1');
  t.is(limitOf(intake, 'da'), 1);
  t.is(intake.problems.length, 1);
});

test('when no resource of a first response is good there are no rules', (t) => {
  const intake = take([resource('a', 'da')]);
  t.is(intake.ruleSet, undefined);
  t.is(intake.inForce.size, 0);
});

test('when a bad resource is the only difference nothing changes', (t) => {
  const { inForce } = take([resource('a', 'da', 1), resource('b', 'db', 1)]);
  const intake = take([resource('b', 'db'), resource('a', 'da', 1)], inForce);
  t.is(intake.ruleSet, undefined);
  t.is(shown(intake), 'a: da=1, b: db=1');
  t.deepEqual(intake.kept, ['b']);
});

test('a resource that cannot be decoded, or has another type, is named by its position', (t) => {
  const other = { type_url: 'type.googleapis.com/foo.Bar', value: Buffer.alloc(0) };
  const intake = take([resource('a', 'da', 1), unreadable, other]);
  t.is(shown(intake), 'a: da=1');
  t.regex(
    errorsOf(intake),
    /^resource 2 of the response: error: cannot be read as ratelimit\.config\.ratelimit\.v3\.RateLimitConfig \(.+\)$/m,
  );
  t.regex(
    errorsOf(intake),
    /^resource 3 of the response: error: mismatched message type: got 'type\.googleapis\.com\/foo\.Bar', want 'ratelimit\.config\.ratelimit\.v3\.RateLimitConfig'$/m,
  );
});

test('the host before the name of the type does not matter', (t) => {
  const { value = Buffer.alloc(0) } = resource('a', 'da', 1);
  const bare = 'ratelimit.config.ratelimit.v3.RateLimitConfig';
  t.is(shown(take([{ type_url: bare, value }])), 'a: da=1');
  t.is(shown(take([{ type_url: `example.com/x/${bare}`, value }])), 'a: da=1');
});

// Proof of migrating.md: What is missing beside a bad resource that was never good, or cannot be read, stays:
// it may have been renamed
test('a resource that is missing beside an unidentifiable one does not count as removed', (t) => {
  const { inForce } = take([resource('a', 'da', 1), resource('b', 'db', 1)]);
  const lost = take([resource('b', 'db', 2), unreadable], inForce);
  t.is(shown(lost), 'a: da=1, b: db=2');
  t.deepEqual(lost.kept, ['a']);
  const renamed = take([resource('b', 'db', 2), resource('a2', 'da')], inForce);
  t.is(shown(renamed), 'a: da=1, b: db=2');
});

test('a missing resource is removed when another one took over its domain', (t) => {
  const { inForce } = take([resource('a', 'da', 1)]);
  const intake = take([resource('a2', 'da', 2), unreadable], inForce);
  t.is(shown(intake), 'a2: da=2');
  t.is(intake.problems.length, 1);
});

test('two resources with the same domain both keep their earlier versions', (t) => {
  const first = take([resource('a', 'da', 1), resource('b', 'db', 1), resource('c', 'dc', 1)]);
  const resources = [resource('a', 'da', 2), resource('b', 'da', 3), resource('c', 'dc', 2)];
  for (const order of [resources, [...resources].reverse()]) {
    const second = take(order, first.inForce);
    t.is(shown(second), 'a: da=1, b: db=1, c: dc=2');
    t.deepEqual([...second.kept].sort(), ['a', 'b']);
    t.is(errorsOf(second), "b: error: domain: duplicate domain 'da' in config file");
  }
});

test('a conflict that the repair of another uncovers is repaired too', (t) => {
  const { inForce } = take([resource('a', 'd1', 1), resource('b', 'd2', 1)]);
  const resources = [resource('a', 'd2', 2), resource('b', 'd2', 2), resource('c', 'd1', 2)];
  t.is(shown(take(resources, inForce)), 'a: d1=1, b: d2=1');
});

test('a swap of domains is not a conflict', (t) => {
  const { inForce } = take([resource('a', 'd1', 1), resource('b', 'd2', 1)]);
  const intake = take([resource('a', 'd2', 2), resource('b', 'd1', 2)], inForce);
  t.is(shown(intake), 'a: d2=2, b: d1=2');
  t.deepEqual(intake.problems, []);
});

test('when merging is on, one domain may be in several resources, one rule may not', (t) => {
  const rule = (name: string, key: string) =>
    any({ name, domain: 'd', descriptors: [{ key, rateLimit: { unit: 1, requestsPerUnit: 1 } }] });
  const first = take([rule('a', 'x'), rule('b', 'y')], new Map(), true);
  t.deepEqual(first.problems, []);
  t.is(first.ruleSet?.limitCount, 2);
  const second = take([rule('a', 'x'), rule('b', 'x')], first.inForce, true);
  t.is(second.ruleSet, undefined);
  t.is(errorsOf(second), "b: error: descriptors[0]: duplicate descriptor composite key 'd.x'");
  t.is(second.inForce.get('b')?.document.descriptors[0]?.key, 'y');
});

test('resources without a name, or with the same name, are distinguished', (t) => {
  const intake = take([
    resource('', 'd1', 1),
    resource('', 'd2', 2),
    resource('a', 'd3', 3),
    resource('a', 'd4', 4),
    resource('a (2)', 'd5', 5),
  ]);
  t.is(
    shown(intake),
    '(no name, domain d1): d1=1, (no name, domain d2): d2=2, a (2) (2): d5=5, a (2): d4=4, a: d3=3',
  );
  t.is(
    shown(take([resource('', 'd2', 9), resource('', 'd1')], intake.inForce)).includes('d1=1'),
    true,
  );
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
          const intake = take(resources, inForce);
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
