import test from 'ava';
import { tighter, toGrantedBucket, toPacedBucket, toSteps } from './strategy.ts';

test('a rate is written in whole tokens and whole seconds, at most half a percent below', (t) => {
  for (const perSecond of [0.001, 0.0333, 0.5, 1, 7.7, 44.5, 100, 12_345.6, 4_000_000]) {
    const bucket = toPacedBucket(10, perSecond);
    if (typeof bucket === 'string') return t.fail(bucket);
    const rate = bucket.tokensPerFill / bucket.fillSeconds;
    t.true(rate <= perSecond && rate >= perSecond * 0.995, `${perSecond} became ${rate}`);
    t.true(Number.isInteger(bucket.fillSeconds) && Number.isInteger(bucket.tokensPerFill));
  }
});

test('less than one request is no request', (t) => {
  t.is(toPacedBucket(0.9, 1), 'deny_all');
  t.is(toPacedBucket(5, 0), 'deny_all');
  t.is(toGrantedBucket(0), 'deny_all');
});

test('granted requests are not refilled for a year', (t) => {
  t.deepEqual(toGrantedBucket(7.9), { maxTokens: 7, tokensPerFill: 1, fillSeconds: 31_536_000 });
});

test('numbers are at most as large as the protocol allows', (t) => {
  t.like(toPacedBucket(1e12, 1e12), { maxTokens: 4_294_967_295, tokensPerFill: 4_294_967_295 });
});

test('the tighter of two strategies counts: the slower rate and the smaller bucket', (t) => {
  const fast = { maxTokens: 5, tokensPerFill: 100, fillSeconds: 1 };
  const slow = { maxTokens: 50, tokensPerFill: 100, fillSeconds: 10 };
  t.deepEqual(tighter(fast, slow), { maxTokens: 5, tokensPerFill: 100, fillSeconds: 10 });
  t.is(tighter('allow_all', slow), slow);
  t.is(tighter(slow, 'allow_all'), slow);
  t.is(tighter('deny_all', slow), 'deny_all');
  t.is(tighter(slow, 'deny_all'), 'deny_all');
});

test('a strategy that Envoy would take for the same has another number, and a bucket is refilled after another strategy', (t) => {
  const before = { maxTokens: 5, tokensPerFill: 100, fillSeconds: 1 };
  const slower = { ...before, fillSeconds: 10 };
  t.deepEqual(toSteps(before, before, false), [before], 'the bucket stays');
  t.deepEqual(toSteps(before, before, true), ['deny_all', before], 'the bucket is filled');
  t.deepEqual(toSteps(before, undefined, true), [before], 'the first one is full');
  t.deepEqual(toSteps(slower, before, false), [{ ...slower, tokensPerFill: 99 }]);
  const one = { maxTokens: 5, tokensPerFill: 1, fillSeconds: 1 };
  t.deepEqual(toSteps({ ...one, fillSeconds: 10 }, one, false), [
    { maxTokens: 5, tokensPerFill: 2, fillSeconds: 10 },
  ]);
  t.deepEqual(toSteps('deny_all', before, true), ['deny_all']);
});
