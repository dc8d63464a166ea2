import test from 'ava';
import { createRecordedLog } from '../test/support/recorded-log.ts';
import { createHealth } from './health.ts';

// Proof of migrating.md: The store's health component is healthy when first seen
test('a worker starts healthy when no configuration is required', (t) => {
  const health = createHealth({ requireConfig: false });
  t.true(health.healthy);
  t.deepEqual(
    [...health.components()],
    [
      ['store', true],
      ['sigterm', true],
    ],
  );
});

test('if a configuration is required, the worker is unhealthy until one is loaded', (t) => {
  const health = createHealth({ requireConfig: true });
  t.false(health.healthy);
  t.is(health.components().get('config'), false);
  health.set('config', true);
  t.true(health.healthy);
  health.set('config', false);
  t.false(health.healthy);
});

test('the configuration does not matter if it is not required', (t) => {
  const health = createHealth({ requireConfig: false });
  health.set('config', false);
  t.true(health.healthy);
  t.false(health.components().has('config'));
});

test('one unhealthy component makes the worker unhealthy', (t) => {
  const health = createHealth({ requireConfig: true });
  health.set('config', true);
  health.set('store', false);
  t.false(health.healthy);
  health.set('store', true);
  t.true(health.healthy);
});

test('a termination is final', (t) => {
  const health = createHealth({ requireConfig: false });
  health.set('sigterm', false);
  health.set('sigterm', true);
  t.false(health.healthy);
  t.is(health.components().get('sigterm'), false);
});

test('listeners are notified of each change of the overall state once, until they stop listening', (t) => {
  const health = createHealth({ requireConfig: true });
  const received: boolean[] = [];
  const stop = health.onChange((healthy) => received.push(healthy));
  health.set('config', true);
  health.set('config', true);
  health.set('store', false);
  health.set('config', false);
  health.set('config', true);
  t.deepEqual(received, [true, false]);
  stop();
  stop();
  health.set('store', true);
  t.deepEqual(received, [true, false]);
});

test('a listener that subscribes twice is called twice, and each subscription ends by itself', (t) => {
  const health = createHealth({ requireConfig: false });
  let calls = 0;
  const listener = () => {
    calls++;
  };
  const stop = health.onChange(listener);
  health.onChange(listener);
  health.set('store', false);
  t.is(calls, 2);
  stop();
  health.set('store', true);
  t.is(calls, 3);
});

test('the log has the initial state and each change of a component, in the reference’s wording', (t) => {
  const log = createRecordedLog();
  const health = createHealth({ requireConfig: true, log });
  health.set('config', true);
  health.set('config', true);
  health.set('store', false);
  health.set('sigterm', false);
  const line = (states: string, healthy: boolean) =>
    `debug Health status of components: map[${states}], all healthy: ${healthy}`;
  t.deepEqual(log.lines, [
    line('config:false redis:true sigterm:true', false),
    line('config:true redis:true sigterm:true', true),
    line('config:true redis:false sigterm:true', false),
    line('config:true redis:false sigterm:false', false),
  ]);
});

test('the result of components() does not change later', (t) => {
  const health = createHealth({ requireConfig: false });
  const before = health.components();
  health.set('store', false);
  t.is(before.get('store'), true);
});
