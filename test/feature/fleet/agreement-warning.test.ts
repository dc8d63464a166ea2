// Tests what `status` prints about workers that count differently, for answers made by the test.
import { createServer } from 'node:http';
import test, { type ExecutionContext } from 'ava';
import type { AgreementsJson } from '../../../control-plane/server/admin/differing-workers.ts';
import { type CommandRun, runInProcess } from '../../support/command-run.ts';
import { listenFor } from '../../support/listen.ts';

async function statusOf(
  t: ExecutionContext,
  verdict: 'in_force' | 'pending',
  disagreements: readonly AgreementsJson[],
): Promise<CommandRun> {
  const newest = { id: '1'.repeat(40), problems: [] };
  const answer = { verdict, text: 'as it is', newest, workers: { connected: 1 }, disagreements };
  const server = createServer((_request, response) => response.end(JSON.stringify(answer)));
  const port = await listenFor(t, server);
  return runInProcess(['status', '--admin-url', `http://127.0.0.1:${port}`]);
}

function kind(agreement: string, workers: number, id: string) {
  return { agreement, workers, example: { id, address: '10.0.0.1:5' } };
}

test('each node group is a warning, and the exit code is that of the revision', async (t) => {
  const disagreements = [
    { group: 'west', count: 12, agreements: [kind('aaaa', 20, 'w1'), kind('bbbb', 1, 'w2')] },
    { group: null, count: 2, agreements: [kind('aaaa', 1, 'x'), kind('cccc', 1, 'y')] },
  ];
  const hint = '/status on their debug ports lists the settings that must be equal';
  const err = `warning: workers of node group 'west' count differently, because their settings differ: 20 have agreement aaaa (one is w1 at 10.0.0.1:5), 1 has agreement bbbb (w2 at 10.0.0.1:5), there are 10 more; ${hint}
warning: workers count differently, because their settings differ: 1 has agreement aaaa (x at 10.0.0.1:5), 1 has agreement cccc (y at 10.0.0.1:5); ${hint}
`;
  const out = 'revision 111111111111 is in force on the 1 connected worker\n';
  t.deepEqual(await statusOf(t, 'in_force', disagreements), { code: 0, out, err });
  t.deepEqual(await statusOf(t, 'pending', disagreements), { code: 3, out: 'as it is\n', err });
  t.deepEqual(await statusOf(t, 'in_force', []), { code: 0, out, err: '' });
});

test("workers' names are shortened, and have no effect on a terminal", async (t) => {
  const agreements = [kind('\x1b[2J', 1, `n\n\x1b]0;x${'y'.repeat(10_000)}`), kind('b', 1, 'b')];
  const { err } = await statusOf(t, 'in_force', [{ group: 'g\u202e', count: 2, agreements }]);
  t.notRegex(err, /[^\n\P{C}]/u);
  t.is(err.indexOf('\n'), err.length - 1);
  t.true(err.length < 600, err);
});
