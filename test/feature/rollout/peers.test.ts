// Tests the token that control planes of one fleet need for each other in a rollout.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import {
  type ControlPlaneInProcess,
  createControlPlaneInProcess,
} from '../../support/control-plane-in-process.ts';
import { connectWorker } from '../../support/discovery-worker.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { startRedisServer } from '../../support/redis-server.ts';
import { createRulesFolder, ruleText } from '../../support/rules-folder.ts';

const portOf = ({ xdsAddress }: ControlPlaneInProcess) => Number(xdsAddress.split(':')[1]);

test('where tokens are required, the leader calls its peers with the one from its file', async (t) => {
  const rules = createRulesFolder(t);
  const files = createRulesFolder(t);
  rules.write('a.yaml', ruleText('first', 1));
  const token = 'r'.repeat(32);
  files.write('tokens', `peers read ${token}\n`);
  const path = (name: string) => join(files.path, name);
  const ports = [await freePort(), await freePort()] as const;
  const redis = await startRedisServer(t);
  const create = (own: 0 | 1) => {
    files.write(`token-${own}`, token);
    return createControlPlaneInProcess(t, {
      flags: [
        ...['--config-dir', rules.path, '--admin-tokens-file', path('tokens')],
        ...['--peers-token-file', path(`token-${own}`), '--rollout', 'canary=10%,hold=1h'],
        ...['--peers', `http://127.0.0.1:${ports[1 - own]}`, '--record', `redis://${redis.url}`],
      ],
      adminPort: ports[own],
    });
  };
  const planes = [await create(0), await create(1)] as const;
  await Promise.all(planes.map((plane) => plane.start()));
  const workers = planes.flatMap((plane, index) =>
    ['a', 'b', 'c'].map((id) => connectWorker(t, portOf(plane), `${id}-${index}`)),
  );
  const having = (text: string) => workers.filter(({ sees }) => sees(text)).length;
  await eventually('all have the first', () => having('first') === 6);
  rules.write('a.yaml', ruleText('second', 1));
  await eventually('one of six has the second', () => having('second') === 1);
  // A token that the other one does not accept.
  for (const own of [0, 1]) writeFileSync(path(`token-${own}`), `${own}`.repeat(32));
  await eventually('the leader reports what it waits for', async () => {
    const states = await Promise.all(
      planes.map((plane) =>
        plane.fetch('/rollouts', { headers: { authorization: `Bearer ${token}` } }),
      ),
    );
    return states.some(({ body }) => /does not answer \(HTTP 401\)/.test(body.rollout?.text));
  });
  for (const plane of planes) t.false(plane.output().includes(token));
});
