// What happens on the way from a worker to its control plane: the rules in force stay and decide, what
// was changed meanwhile comes when it can, whole, and both the loss and the return are said.
import test, { type ExecutionContext } from 'ava';
import { createControlPlaneProcess } from '../support/control-plane-process.ts';
import { eventually } from '../support/eventually.ts';
import { createRulesFolder, ruleText } from '../support/rules-folder.ts';
import { type Fault, startTcpProxy } from '../support/tcp-proxy.ts';
import { startFollower } from './rules-follower.ts';

/** Of a worker: one for the rules, and one for what it reports. */
const connections = 2;

async function startBoth(t: ExecutionContext) {
  const rules = createRulesFolder(t);
  rules.write('d.yaml', ruleText('d', 11));
  const plane = await createControlPlaneProcess(t, { flags: ['--config-dir', rules.path] });
  await plane.start();
  const proxy = await startTcpProxy(t, Number(plane.xdsAddress.split(':')[1]));
  const url = `127.0.0.1:${proxy.port}`;
  const follower = await startFollower(t, url, 11);
  await eventually('both connections are there', () => proxy.open === connections);
  /** Resolves when the control plane has it. */
  const change = async (requests: number) => {
    rules.replace('d.yaml', ruleText('d', requests));
    await eventually('the change is known', async () => {
      const { body } = await plane.fetch('/domains/d');
      return JSON.stringify(body).includes(`requests_per_unit: ${requests} `);
    });
  };
  /** The control plane's own view of it. */
  const isEverywhere = async () => {
    const { verdict, workers } = (await plane.fetch('/status')).body;
    return verdict === 'in_force' && workers.inForce === 1 && workers.connected === 1;
  };
  return { change, follower, isEverywhere, proxy, url };
}

for (const fault of [
  { kind: 'latency', ms: 200 },
  { kind: 'drip', bytes: 32, everyMs: 10 },
] as const satisfies Fault[]) {
  test.serial(
    `the control plane is slow (${fault.kind}): changes come, nothing is lost`,
    async (t) => {
      const { change, follower, isEverywhere, proxy } = await startBoth(t);
      proxy.inject(fault);
      await change(12);
      await follower.becomes(12);
      await follower.checkInForce(12);
      await eventually('the control plane knows', isEverywhere);
      t.is(proxy.accepted, connections);
      t.deepEqual(troubles(follower.lines), []);
    },
  );
}

test.serial('the control plane is silent (stall): what it had to say comes after', async (t) => {
  const { change, follower, isEverywhere, proxy } = await startBoth(t);
  proxy.inject({ kind: 'stall' });
  await change(12);
  await follower.checkInForce(11);
  proxy.heal();
  await follower.becomes(12);
  await eventually('the control plane knows', isEverywhere);
  t.is(proxy.accepted, connections);
});

for (const kind of ['reset', 'half-close', 'cut'] as const) {
  test.serial(
    `the way to the control plane is broken (${kind}): the rules in force stay`,
    async (t) => {
      const { change, follower, isEverywhere, proxy, url } = await startBoth(t);
      proxy.inject({ kind });
      await change(12);
      await eventually('several attempts', () => proxy.accepted >= 5);
      await follower.checkInForce(11);
      const lost = troubles(follower.lines).filter((line) => line.startsWith('error'));
      t.true(lost.length >= 1 && lost.length <= 3, lost.join('\n'));
      t.true(
        lost.every((line) => line.includes(url) && line.includes('the rules in force stay')),
        lost.join('\n'),
      );

      proxy.heal();
      await follower.becomes(12);
      await follower.checkInForce(12);
      await eventually('the control plane knows', isEverywhere);
      await eventually('no connection is left over', () => proxy.open === connections);
      const { accepted } = proxy;
      await change(13);
      await follower.becomes(13);
      t.is(proxy.accepted, accepted, 'nothing is opened again that is there');
      const back = `notice Connected to the management server ${url} after `;
      t.true(
        follower.lines.some((line) => line.startsWith(back)),
        troubles(follower.lines).join('\n'),
      );
    },
  );
}

function troubles(lines: readonly string[]): string[] {
  return lines.filter((line) => /^(error|warning) .*management server/.test(line));
}
