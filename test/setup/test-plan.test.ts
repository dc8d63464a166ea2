import { globSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { planTests } from './test-plan.ts';

const root = join(import.meta.dirname, '..', '..');
const pathsOf = (stages: ReturnType<typeof planTests>) =>
  stages.flatMap(({ lanes }) => lanes.flatMap(({ rooms }) => rooms.flat().map(({ path }) => path)));

test('each test file runs once, in one of the two parts', (t) => {
  const quick = pathsOf(planTests(root, [], ['quick']));
  const rest = pathsOf(planTests(root, [], ['rest']));
  const all = globSync('{shared,worker,control-plane,test}/**/*.test.ts', { cwd: root });
  t.deepEqual([...quick, ...rest].sort(), all.sort());
  t.deepEqual(pathsOf(planTests(root, [], ['quick', 'rest'])).sort(), all.sort());
  t.true(quick.includes('test/e2e/start.test.ts') && rest.includes('test/e2e/envoy.test.ts'));
});

test('npm test needs no more than it installs', (t) => {
  t.false(planTests(root, [], ['quick']).some(({ needsTools }) => needsTools));
  const [stage] = planTests(root, ['test/e2e/envoy.test.ts'], []);
  t.true(stage?.needsTools);
  t.true(stage?.lanes[0]?.rooms[0]?.[0]?.needs.commands.includes('envoy'));
});

test('the tests below a folder of a program share a process', (t) => {
  const [stage, ...others] = planTests(root, ['worker/counters', 'worker/decision'], []);
  t.deepEqual(others, []);
  t.is(stage?.lanes[0]?.rooms.length, 2);
});
