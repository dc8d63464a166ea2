// A control plane in a container of 256 MB. The limit applies to its peak memory, including about 60 MB of the
// program's own files, which the system may evict.
import test from 'ava';
import { createControlPlaneProcess } from '../support/control-plane-process.ts';
import { eventually } from '../support/eventually.ts';
import { createRulesFolder } from '../support/rules-folder.ts';

/** Loaded first: the program believes that it runs in such a container, and reports its memory use. */
const container = `
process.constrainedMemory = () => 256 * 1024 * 1024;
process.on('SIGUSR2', () => process.stderr.write('at most ' + process.resourceUsage().maxRSS + ' kB\\n'));
`;

const rulesOf = (amount: number) =>
  `domain: shop\ndescriptors:\n${Array.from(
    { length: 30_000 },
    (_, at) =>
      `  - key: user\n    value: customer-${at}\n    rate_limit: {unit: minute, requests_per_unit: ${amount}}\n`,
  ).join('')}`;

test('30,000 limits are served and changed in a container of 256 MB', async (t) => {
  t.timeout(300_000);
  const rules = createRulesFolder(t);
  rules.replace('shop.yaml', rulesOf(5));
  const plane = await createControlPlaneProcess(t, {
    flags: ['--config-dir', rules.path],
    env: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(container)}` },
  });
  await plane.start();
  const inForce = () => plane.output().split(' is in force').length - 1;
  await eventually('the first are in force', () => inForce() === 1, 120_000);
  for (const change of [1, 2]) {
    rules.replace('shop.yaml', rulesOf(5 + change));
    await eventually('a change is in force', () => inForce() === change + 1, 120_000);
  }
  plane.signal('SIGUSR2');
  const most = () => Number(/at most (\d+) kB/.exec(plane.output())?.[1]);
  await eventually('the memory in use is logged', () => most() > 0);
  t.true(most() < 350 * 1024, `${most()} kB`);
});
