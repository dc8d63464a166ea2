import test from 'ava';
import fc from 'fast-check';
import { createTaggedFormat, type NameRewrite } from './tagged-format.ts';

const hits: NameRewrite = {
  pattern: /^ratelimit\.service\.rate_limit\.([^.]+)\.(.*)\.([^.]+)$/,
  metricName: 'rl.$3',
  tags: { domain: '$1', rule: '$2' },
};
const name = 'ratelimit.service.rate_limit.shop.user_ada.total_hits';

test('without rewriting the name stays, and extra tags become tags', (t) => {
  const format = createTaggedFormat({ rewrites: [], tags: { zone: 'b', env: 'a.b:c' } });
  t.is(format.counter('a.b', 3), 'a.b:3|c|#env:a_b_c,zone:b\n');
  t.is(format.gauge('g', 7), 'g:7|g|#env:a_b_c,zone:b\n');
  t.is(format.counter('reserved_tag', 1), 'reserved_tag:1|c\n');
  t.is(format.flushed(), '');
});

test('without any tags the separator of tags is missing', (t) => {
  const format = createTaggedFormat({ rewrites: [], tags: {} });
  t.is(format.counter('a.b', 3), 'a.b:3|c\n');
});

test('timers have six decimals', (t) => {
  const format = createTaggedFormat({ rewrites: [], tags: {} });
  t.is(format.timer('t', 0), 't:0.000000|ms\n');
  t.is(format.timer('t', 12), 't:12.000000|ms\n');
});

test('a matching name is rewritten, its tags after the extra ones', (t) => {
  const format = createTaggedFormat({ rewrites: [hits], tags: { env: 'prod' } });
  t.is(format.counter(name, 2), 'rl.total_hits:2|c|#env:prod,domain:shop,rule:user_ada\n');
  t.is(format.counter(name, 5), 'rl.total_hits:5|c|#env:prod,domain:shop,rule:user_ada\n');
  t.is(format.counter('other', 1), 'other:1|c|#env:prod\n');
});

test("a counter's own tags are not in its name, but among the extra ones", (t) => {
  const tags = { env: 'p', a: 'x' };
  const code = { code: 'success' };
  const plain = createTaggedFormat({ rewrites: [], tags });
  t.is(plain.counter('calls.get', 2, code), 'calls.get:2|c|#a:x,code:success,env:p\n');
  const rewrites = [{ pattern: /^calls\.([a-z]+)$/, metricName: 'calls', tags: { of: '$1' } }];
  const format = createTaggedFormat({ rewrites, tags });
  t.is(format.counter('calls.get', 2, code), 'calls:2|c|#a:x,code:success,env:p,of:get\n');
});

test('a part of a name in the form of a tag, which a request can contain, is not a tag', (t) => {
  const format = createTaggedFormat({ rewrites: [], tags: {} });
  t.is(format.counter('d.k_.__a=b.total_hits', 1), 'd.k_.__a=b.total_hits:1|c\n');
});

test('the first pattern that matches counts, anywhere in the name', (t) => {
  const format = createTaggedFormat({
    rewrites: [
      { pattern: /nothing/, metricName: 'x', tags: {} },
      { pattern: /shop/, metricName: 'first', tags: {} },
      hits,
    ],
    tags: {},
  });
  t.is(format.counter(name, 1), 'first:1|c\n');
});

test('groups: the whole match, those not in the pattern, and those without a match', (t) => {
  const format = createTaggedFormat({
    rewrites: [{ pattern: /a(b)?c/, metricName: '$0.[$1].$9.$', tags: { t: '$2', u: '$1$1' } }],
    tags: {},
  });
  t.is(format.counter('xabcx', 1), 'abc.[b].$9.$:1|c|#t:$2,u:bb\n');
  t.is(format.counter('xacx', 1), 'ac.[].$9.$:1|c|#t:$2,u:\n');
});

// Proof of migrating.md: Commas and control characters in tag values become `_`
test('no part of a name can add a tag, a line or a field', (t) => {
  const format = createTaggedFormat({
    rewrites: [{ pattern: /^(.*)$/s, metricName: '$1', tags: { rule: '$1' } }],
    tags: {},
  });
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const line = format.counter(text.replace(/[:|]/g, '_'), 1);
      t.regex(line, /^[^:|\n]*:1\|c\|#rule:[^,|\n]*\n$/u);
    }),
  );
});

test('more names than are cached are all rewritten', (t) => {
  const format = createTaggedFormat({ rewrites: [hits], tags: {} });
  for (let round = 0; round < 2; round++) {
    for (let i = 0; i < 25_000; i++) {
      const line = format.counter(`ratelimit.service.rate_limit.d.k_${i}.total_hits`, 1);
      if (line !== `rl.total_hits:1|c|#domain:d,rule:k_${i}\n`) t.fail(line);
    }
  }
  t.pass();
});
