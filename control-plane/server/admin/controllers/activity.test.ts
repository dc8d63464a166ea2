import test from 'ava';
import { startAdminApi } from '../../../../test/support/admin-api.ts';
import { runInProcess } from '../../../../test/support/command-run.ts';
import { freePort } from '../../../../test/support/free-port.ts';
import type { Outcomes } from '../../record/outcomes.ts';
import { findEntries, toEntries } from './activity.ts';

const outcome = (kind: Outcomes[number]['kind'], atMs: number, more = {}): Outcomes[number] => ({
  ...{ revisions: ['0123456789abcdef'], content: 'c', kind, atMs, reason: '', by: '' },
  ...more,
});
const history = [
  { id: '0123456789abcdef', atMs: 1, author: 'ann <a@x>', message: 'raise ada\n\nmore' },
];
const pushed = {
  ...{ atMs: 5_000, who: 'bob', what: 'put domain shop: why not' },
  ...{ before: 'a', after: 'b', outcome: 'done' },
};
const all = { who: undefined, object: undefined, sinceMs: undefined, limit: 10 };

test('actions and outcomes of revisions are one list, the newest first', (t) => {
  const entries = toEntries(
    [pushed, { ...pushed, atMs: 6_000, who: 'rollout', what: 'take back revision 0123: bad' }],
    [outcome('taken_back', 6_000, { reason: 'errors' }), outcome('in_force', 2_000)],
    history,
  );
  t.deepEqual(
    findEntries(entries, all).map(({ who, what }) => [who, what]),
    [
      ['rollout', "revision 0123456789ab 'raise ada' was taken back: errors"],
      ['bob', 'put domain shop: why not'],
      ['ann <a@x>', "revision 0123456789ab 'raise ada' came into force"],
    ],
  );
});

test('an entry is found by its author, by its object, and by its time', (t) => {
  const entries = toEntries([pushed], [outcome('in_force', 2_000)], history);
  const find = (question: object) => findEntries(entries, { ...all, ...question }).length;
  t.is(find({ who: 'ANN' }), 1);
  t.is(find({ object: 'SHOP' }), 1);
  t.is(find({ object: '012345' }), 1);
  t.is(find({ sinceMs: 3_000 }), 1);
  t.is(find({ who: 'nobody' }), 0);
  t.is(find({ limit: 1 }), 1);
});

test('an outcome that two control planes have on record is listed once', (t) => {
  const entries = toEntries([], [outcome('in_force', 2_000)], history);
  t.is(findEntries([...entries, ...entries], all).length, 1);
});

test('a control plane whose actions are unknown is named', async (t) => {
  const url = `http://127.0.0.1:${await freePort()}`;
  const { url: api, ask } = await startAdminApi(t, {
    files: {},
    peers: [{ kind: 'url', url: new URL(url) }],
  });
  const { missing } = (await ask('GET', '/activity')).body;
  t.like(missing, [{ url }]);
  const { code, err } = await runInProcess(['audit', '--admin-url', api]);
  t.is(code, 0);
  t.true(
    err.startsWith(`warning: the actions at ${url} are not listed: it does not answer (`),
    err,
  );
});
