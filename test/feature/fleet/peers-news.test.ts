// Tests that a revision found by one control plane is found by its peers at once, whatever notified it.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { signBody } from '../../../control-plane/server/store/webhook.ts';
import { createControlPlaneInProcess } from '../../support/control-plane-in-process.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { createGitRepository } from '../../support/git-repository.ts';
import { ruleText } from '../../support/rules-folder.ts';

const webhookSecret = 'the-secret-of-the-webhook';

async function startTwo(t: ExecutionContext) {
  const repository = createGitRepository(t, { 'shop.yaml': ruleText('shop', 1) });
  const file = (name: string, text: string) => {
    writeFileSync(join(repository.folder, name), text);
    return join(repository.folder, name);
  };
  const ports = [await freePort(), await freePort()] as const;
  const flags = [
    // No poll of its own within the test.
    ...['--git', repository.path, '--git-poll', '1h'],
    ...['--webhook-secret-file', file('webhook-secret', webhookSecret)],
    ...['--admin-tokens-file', file('tokens', `ann write ${'w'.repeat(32)}\n`)],
    ...['--peers-token-file', file('peers-token', 'p'.repeat(32))],
  ];
  const planes = await Promise.all(
    ports.map((adminPort, index) =>
      createControlPlaneInProcess(t, {
        adminPort,
        flags: [...flags, '--peers', `http://127.0.0.1:${ports[1 - index]}`],
      }),
    ),
  );
  await Promise.all(planes.map((plane) => plane.start()));
  const [one, other] = planes as [(typeof planes)[number], (typeof planes)[number]];
  const headers = { authorization: `Bearer ${'w'.repeat(32)}` };
  return { repository, one, other, headers };
}

test('a webhook that reaches one control plane reaches all', async (t) => {
  const { repository, one, other, headers } = await startTwo(t);
  repository.push({ 'shop.yaml': ruleText('shop', 1).replace('unit: ', 'unit: x') });
  const head = repository.gitAtRemote('rev-parse', 'main');
  const body = JSON.stringify({ ref: 'refs/heads/main' });
  const signature = { 'x-hub-signature-256': signBody(body, webhookSecret) };
  const call = { method: 'POST', body, headers: signature };
  t.is((await one.fetch('/webhooks', call)).status, 202);
  await eventually('the peer refuses it too', async () => {
    const { body: status } = await other.fetch('/status', { headers });
    return status.newest.id === head && status.verdict === 'invalid';
  });
});

test('a change that is made on one control plane is seen by all', async (t) => {
  const { one, other, headers } = await startTwo(t);
  const change = {
    method: 'PUT',
    body: ruleText('shop', 2),
    headers: { ...headers, 'if-match': '*', 'content-type': 'application/yaml' },
  };
  const before = (await other.fetch('/status', { headers })).body.newest.id;
  t.is((await one.fetch('/domains/shop', change)).status, 200);
  await eventually('the peer has it too', async () => {
    const { body: status } = await other.fetch('/status', { headers });
    return status.newest.id !== before && status.verdict === 'no_workers';
  });
});
