// Tests notifications of recorded outcomes: created from the store's revisions, and sent in the order of the outcomes.
import { createServer } from 'node:http';
import test from 'ava';
import { systemClock } from '../../../shared/clock.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { listenFor } from '../../../test/support/listen.ts';
import { createRecordedLog } from '../../../test/support/recorded-log.ts';
import { revisionOf } from '../../../test/support/revision-store.ts';
import type { OutcomeOnRecord } from '../record/outcomes.ts';
import { createNotifying } from './notifying.ts';

const outcomeOf = (number: number, kind: OutcomeOnRecord['kind']): OutcomeOnRecord => ({
  revisions: [revisionOf(number).id],
  content: '',
  kind,
  atMs: number,
  reason: '',
  by: '',
});

test('outcomes are sent in order, even if the store takes longer for the first', async (t) => {
  const events: string[] = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request.setEncoding('utf8')) body += chunk;
    events.push(JSON.parse(body).event);
    response.end();
  });
  const port = await listenFor(t, server);
  const slow = Promise.withResolvers<void>();
  const notifying = createNotifying({
    settings: {
      url: new URL(`http://127.0.0.1:${port}/hook`),
      secretFile: undefined,
      commitStatus: undefined,
      publicUrl: undefined,
    },
    store: {
      async readRevision(id) {
        if (id === revisionOf(2).id) await slow.promise;
        return undefined;
      },
    },
    examine: () => t.fail('it was examined'),
    repositoryFolder: '',
    onEnd: () => {},
    log: createRecordedLog(),
    clock: systemClock,
  });
  t.teardown(() => {
    notifying?.stop();
    server.close();
    server.closeAllConnections();
  });
  notifying?.notify([outcomeOf(2, 'held_back')]);
  notifying?.notify([outcomeOf(3, 'in_force')]);
  // Long enough for the second notification to overtake the first, if it can.
  for (let turn = 0; turn < 100; turn++) await new Promise(setImmediate);
  slow.resolve();
  await eventually('both are sent', () => events.length === 2);
  t.deepEqual(events, ['held-back', 'in-force']);
});
