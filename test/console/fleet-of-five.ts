// A fleet for the questions of an operator on call: two control planes that are peers, two workers that limit ada,
// three that only accept their rules, and a recent change.
import type { ExecutionContext } from 'ava';
import {
  type ControlPlaneProcess,
  createControlPlaneProcess,
} from '../support/control-plane-process.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { createGitRepository } from '../support/git-repository.ts';
import { connectStreamWorker, type StreamWorker } from '../support/stream-worker.ts';
import { sampleRules, startFed } from './console-fixture.ts';

export interface FleetOfFive {
  readonly plane: ControlPlaneProcess;
  readonly peer: ControlPlaneProcess;
  readonly plain: readonly StreamWorker[];
  /** Made through the API of the first control plane; the first plain worker that receives rules with the plan `gold`
   * refuses them. */
  change(from: string, to: string, reason: string, more?: object): Promise<void>;
}

/** `ada` is refused under a limit of 3, which was 30 before. */
export async function startFleetOfFive(
  t: ExecutionContext,
  ...flags: readonly string[]
): Promise<FleetOfFive> {
  const repository = createGitRepository(t);
  let text = sampleRules.replace('per_unit: 3', 'per_unit: 30');
  repository.push({ 'd.yaml': text });
  const ports = [await freePort(), await freePort()] as const;
  const create = (own: 0 | 1) => {
    const peers = ['--peers', `http://127.0.0.1:${ports[1 - own]}`];
    const all = ['--git', repository.url, '--git-poll', '1s', ...peers, ...flags];
    return createControlPlaneProcess(t, { flags: all, adminPort: ports[own] });
  };
  const [plane, peer] = [await create(0), await create(1)];
  await Promise.all([plane.start(), peer.start()]);

  let refuser: string | undefined;
  const plain = ['plain-1', 'plain-2', 'plain-3'].map((id) =>
    connectStreamWorker(t, {
      address: plane.xdsAddress,
      id,
      answer(given) {
        if (!given.includes('gold')) return 'take';
        refuser ??= id;
        return refuser === id ? 'refuse' : 'take';
      },
    }),
  );
  const limiting = [await startFed(t, { plane }, 'w-1'), await startFed(t, { plane: peer }, 'w-2')];

  async function change(from: string, to: string, reason: string, more = {}): Promise<void> {
    text = text.replace(from, to);
    const { headers } = await plane.fetch('/domains/d');
    const { status, body } = await plane.fetch('/domains/d', {
      method: 'PUT',
      headers: { 'content-type': 'application/json', 'if-match': headers.get('etag') ?? '' },
      body: JSON.stringify({ yaml: text, message: reason, ...more }),
    });
    if (status !== 200) throw new Error(`${status}: ${JSON.stringify(body)}`);
  }

  await change('per_unit: 30', 'per_unit: 3', 'ada asks too often', { rollout: 'now' });
  await eventually('all workers have the revision', async () => {
    const answers = await Promise.all([plane, peer].map((each) => each.fetch('/status')));
    const [id] = answers.map(({ body }) => body.newest.id);
    return answers.every(({ body }) => body.verdict === 'in_force' && body.newest.id === id);
  });
  for (const worker of limiting)
    for (let count = 0; count < 6; count++) await worker.decide('customer=ada');
  await eventually('ada is shown', async () => (await plane.fetch('/top')).body.values.length > 0);
  return { plane, peer, plain, change };
}
