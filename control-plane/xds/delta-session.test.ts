// The delta protocol without a network.
import test from 'ava';
import fc from 'fast-check';
import { loadDiscoveryProtos } from '../../shared/wire/discovery.ts';
import type {
  DeltaDiscoveryRequestMessage,
  DeltaDiscoveryResponseMessage,
} from '../../shared/wire/discovery-messages.ts';
import { createResource, createSnapshot, type Snapshot } from '../snapshot/snapshot.ts';
import { DeltaSession } from './delta-session.ts';
import type { SessionResponse } from './session.ts';

const protos = loadDiscoveryProtos();

function snapshotOf(contents: Readonly<Record<string, string>>): Snapshot {
  return createSnapshot(
    Object.entries(contents).map(([name, text]) =>
      createResource(name, Buffer.from(`${name}=${text}`)),
    ),
  );
}

function read(response: SessionResponse | undefined): DeltaDiscoveryResponseMessage {
  if (response === undefined) throw new Error('nothing was sent');
  const method = protos.aggregated.DeltaAggregatedResources;
  return method.responseDeserialize(Buffer.concat([...response.body]));
}

/** Names with `-` before those that are removed. */
function changes(response: SessionResponse | undefined): string {
  if (response === undefined) return 'nothing';
  const { resources = [], removedResources = [] } = read(response);
  const removed = removedResources.map((name) => `-${name}`);
  return [...resources.map(({ name }) => name), ...removed].join(' ');
}

function versionsOf(snapshot: Snapshot): Record<string, string> {
  return Object.fromEntries([...snapshot.resources].map(([name, { version }]) => [name, version]));
}

function start(snapshot: Snapshot, request: DeltaDiscoveryRequestMessage = {}) {
  const session = new DeltaSession();
  return { session, ...session.onRequest(request, snapshot) };
}

/** A session whose client has accepted the snapshot. */
function settled(snapshot: Snapshot, request: DeltaDiscoveryRequestMessage = {}): DeltaSession {
  const { session, response } = start(snapshot, request);
  session.onSent();
  session.onRequest({ responseNonce: response?.nonce ?? '' }, snapshot);
  return session;
}

function push(session: DeltaSession, snapshot: Snapshot): SessionResponse | undefined {
  const response = session.onSnapshot(snapshot);
  if (response !== undefined) session.onSent();
  return response;
}

const first = snapshotOf({ a: '1', b: '1', c: '1' });
const no = { code: 0, message: 'no' };

test('a first request without names gets everything, with the versions of resources', (t) => {
  const { response } = start(first);
  const message = read(response);
  t.is(message.systemVersionInfo, first.version);
  t.is(message.typeUrl, 'type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig');
  t.deepEqual(
    Object.fromEntries(message.resources?.map(({ name, version }) => [name, version]) ?? []),
    versionsOf(first),
  );
  t.is(message.resources?.[0]?.resource?.value?.toString(), 'a=1');
});

test('clients that hold the same share the bytes of a change', (t) => {
  t.is(start(first).response?.body, start(first).response?.body);
  const second = snapshotOf({ a: '2', b: '1', c: '1' });
  t.is(push(settled(first), second)?.body, push(settled(first), second)?.body);
});

test('a client that holds everything gets nothing, and counts as holding the version', (t) => {
  const { response, answer, session } = start(first, {
    initialResourceVersions: versionsOf(first),
    responseNonce: 'of another stream',
  });
  t.is(response, undefined);
  t.deepEqual(answer, { kind: 'holds', version: first.version });
  t.is(changes(push(session, snapshotOf({ a: '1', b: '2', c: '1' }))), 'b');
});

test('a client that holds something else gets the difference', (t) => {
  const held = { ...versionsOf(snapshotOf({ a: '1', b: 'old', gone: '1' })) };
  t.is(changes(start(first, { initialResourceVersions: held }).response), 'b c -gone');
});

test('an empty snapshot is told to a client that has nothing', (t) => {
  t.is(changes(start(snapshotOf({})).response), '');
  const held = versionsOf(snapshotOf({ a: '1' }));
  t.is(changes(start(snapshotOf({}), { initialResourceVersions: held }).response), '-a');
});

test('a change sends what changed, and names what is gone', (t) => {
  const session = settled(first);
  t.is(changes(push(session, snapshotOf({ a: '1', b: '2', d: '1' }))), 'b d -c');
});

test('an unchanged snapshot pushes nothing, even as another object', (t) => {
  t.is(push(settled(first), snapshotOf({ c: '1', b: '1', a: '1' })), undefined);
});

test('changes while a response is on its way become one', (t) => {
  const session = settled(first);
  t.is(changes(session.onSnapshot(snapshotOf({ a: '2', b: '1', c: '1' }))), 'a');
  t.is(session.onSnapshot(snapshotOf({ a: '2', b: '2', c: '1' })), undefined);
  t.is(session.onSnapshot(snapshotOf({ a: '2', b: '2', c: '2' })), undefined);
  t.is(changes(session.onSent()), 'b c');
  t.is(session.onSent(), undefined);
});

test('a refused response is not sent again, and its resources go along with the next change', (t) => {
  const session = settled(first);
  const bad = snapshotOf({ a: 'bad', b: '2' });
  const response = push(session, bad);
  t.deepEqual(session.onRequest({ responseNonce: response?.nonce ?? '', errorDetail: no }, bad), {
    response: undefined,
    answer: { kind: 'refuses', version: bad.version, text: 'no', holds: '' },
    changesNames: false,
  });
  t.is(push(session, bad), undefined);
  t.is(changes(push(session, snapshotOf({ a: 'good', b: '2' }))), 'a b -c');
});

test('going back to what was accepted sends everything that was refused in between', (t) => {
  const session = settled(first);
  const bad = snapshotOf({ a: 'bad', b: '2' });
  const { nonce = '' } = push(session, bad) ?? {};
  session.onRequest({ responseNonce: nonce, errorDetail: no }, bad);
  t.is(changes(push(session, first)), 'a b c');
});

test('a refusal that comes after the next response has left makes up for what that left out', (t) => {
  const session = settled(first);
  const { nonce = '' } = push(session, snapshotOf({ a: 'bad', b: '2', c: '1' })) ?? {};
  const good = snapshotOf({ a: 'good', b: '2', c: '1' });
  t.is(changes(push(session, good)), 'a');
  const { response } = session.onRequest({ responseNonce: nonce, errorDetail: no }, good);
  t.is(changes(response), 'a b');
  session.onSent();
  const again = { responseNonce: response?.nonce ?? '', errorDetail: no };
  t.is(session.onRequest(again, good).response, undefined);
});

test('an unknown nonce answers nothing, but the names beside it count', (t) => {
  const session = settled(first, { resourceNamesSubscribe: ['a'] });
  const request = { responseNonce: 'unknown', resourceNamesSubscribe: ['b'], errorDetail: no };
  const { response, answer } = session.onRequest(request, first);
  t.is(answer, undefined);
  t.is(changes(response), 'b');
});

test('names choose resources; one that does not exist is named as removed, until it exists', (t) => {
  const { session, response } = start(first, { resourceNamesSubscribe: ['a', 'later'] });
  t.is(changes(response), 'a -later');
  session.onSent();
  t.is(push(session, snapshotOf({ a: '1', b: '2', c: '2' })), undefined);
  t.is(changes(push(session, snapshotOf({ a: '1', later: '1' }))), 'later');
});

test('a name that is asked for again is sent again', (t) => {
  const session = settled(first, { resourceNamesSubscribe: ['a'] });
  t.is(changes(session.onRequest({ resourceNamesSubscribe: ['a'] }, first).response), 'a');
});

test('a request changes names when it has any, be they the same, unless it is the first', (t) => {
  const { session, changesNames } = start(first, { resourceNamesSubscribe: ['a'] });
  t.false(changesNames);
  t.true(session.onRequest({ resourceNamesSubscribe: ['a'] }, first).changesNames);
  t.true(session.onRequest({ resourceNamesUnsubscribe: ['c'] }, first).changesNames);
  t.false(session.onRequest({}, snapshotOf({ a: '2' })).changesNames);
});

test('names that are given up get no more changes', (t) => {
  const session = settled(first, { resourceNamesSubscribe: ['a', 'b'] });
  t.is(session.onRequest({ resourceNamesUnsubscribe: ['a'] }, first).response, undefined);
  t.is(changes(push(session, snapshotOf({ a: '2', b: '2' }))), 'b');
  t.is(session.onRequest({ resourceNamesUnsubscribe: ['b'] }, first).response, undefined);
  t.is(push(session, snapshotOf({ a: '3', b: '3' })), undefined);
});

test('an accepted part is held under the version that is wanted, and a change elsewhere leaves it', (t) => {
  const { session, response } = start(first, { resourceNamesSubscribe: ['a', 'missing'] });
  session.onSent();
  const { answer } = session.onRequest({ responseNonce: response?.nonce ?? '' }, first);
  const version = session.wantedVersion(first) ?? '';
  t.not(version, first.version);
  t.deepEqual(answer, { kind: 'holds', version });
  t.is(session.wantedVersion(snapshotOf({ a: '1', b: '2' })), version);
  t.is(settled(first).wantedVersion(first), first.version);
});

test('a client that gives up names has what it wants at once, although nothing is sent', (t) => {
  for (const all of [
    ['a', 'b'],
    ['*', 'a'],
  ]) {
    const session = settled(first, { resourceNamesSubscribe: all });
    const given = { resourceNamesUnsubscribe: all.filter((name) => name !== 'a') };
    const { response, answer } = session.onRequest(given, first);
    t.is(response, undefined);
    t.deepEqual(answer, { kind: 'keeps', version: session.wantedVersion(first) ?? '' });
  }
});

test('names that are given up before the response is accepted do not count among what is held', (t) => {
  const { session, response } = start(first, { resourceNamesSubscribe: ['a', 'b'] });
  session.onSent();
  t.is(session.onRequest({ resourceNamesUnsubscribe: ['b'] }, first).answer, undefined);
  const { answer } = session.onRequest({ responseNonce: response?.nonce ?? '' }, first);
  t.deepEqual(answer, { kind: 'holds', version: session.wantedVersion(first) ?? '' });
});

test('giving up names says nothing of others that were refused', (t) => {
  const { session, response } = start(first, { resourceNamesSubscribe: ['a', 'b'] });
  session.onSent();
  session.onRequest({ responseNonce: response?.nonce ?? '', errorDetail: no }, first);
  t.is(session.onRequest({ resourceNamesUnsubscribe: ['b'] }, first).answer, undefined);
});

test('a client keeps the resources that it says it has, in whatever order it says so', (t) => {
  const { session } = start(first, {
    resourceNamesSubscribe: ['c', 'b', 'a'],
    initialResourceVersions: Object.fromEntries(Object.entries(versionsOf(first)).reverse()),
  });
  const { answer } = session.onRequest({ resourceNamesUnsubscribe: ['b'] }, first);
  t.deepEqual(answer, { kind: 'keeps', version: session.wantedVersion(first) ?? '' });
});

test('a client that gives up everything wants nothing', (t) => {
  const session = settled(first, { resourceNamesSubscribe: ['a'] });
  t.is(session.onRequest({ resourceNamesUnsubscribe: ['a'] }, first).answer, undefined);
  t.is(session.wantedVersion(first), undefined);
});

test('under "*", a name that is given up is sent or named as removed', (t) => {
  const session = settled(first, { resourceNamesSubscribe: ['*', 'a', 'missing'] });
  const request = { resourceNamesUnsubscribe: ['a', 'missing'] };
  t.is(changes(session.onRequest(request, first).response), 'a -missing');
});

test('under "*", a name that is given up without having been asked for is nothing to tell', (t) => {
  const session = settled(first);
  const request = { resourceNamesUnsubscribe: ['a', 'never'] };
  t.is(session.onRequest(request, first).response, undefined);
  t.is(session.wantedNames, 0);
});

test('names that were given up count for as long as the client was not told of them', (t) => {
  const session = new DeltaSession();
  session.onRequest({ resourceNamesSubscribe: ['*'] }, undefined);
  for (const names of [
    ['a', 'b'],
    ['c', 'd'],
  ]) {
    session.onRequest({ resourceNamesSubscribe: names }, undefined);
    session.onRequest({ resourceNamesUnsubscribe: names }, undefined);
  }
  t.is(session.wantedNames, 4);
  t.is(changes(push(session, first)), 'a b c -d');
  t.is(session.wantedNames, 0);
});

test('missing names that a client refuses to hear of count, resources that it refuses do not', (t) => {
  const { session, response } = start(first);
  session.onSent();
  let nonce = response?.nonce ?? '';
  for (let turn = 0; turn < 10; turn++) {
    const request = {
      responseNonce: nonce,
      errorDetail: no,
      resourceNamesSubscribe: [`missing${turn}`],
      resourceNamesUnsubscribe: turn === 0 ? [] : [`missing${turn - 1}`],
    };
    nonce = session.onRequest(request, first).response?.nonce ?? '';
    session.onSent();
    if (turn === 0) t.is(session.wantedNames, 1);
  }
  session.onRequest({ responseNonce: nonce, errorDetail: no }, first);
  t.is(session.wantedNames, 10);
});

test('"*" given up leaves the names', (t) => {
  const session = settled(first, { resourceNamesSubscribe: ['*', 'a'] });
  t.is(session.onRequest({ resourceNamesUnsubscribe: ['*'] }, first).response, undefined);
  t.is(changes(push(session, snapshotOf({ a: '2', b: '2' }))), 'a');
});

test('a client that never answers gets no more after a few responses, and the rest when it does', (t) => {
  const { session, response } = start(first);
  session.onSent();
  let sent = 1;
  for (let text = 2; text < 20; text++) {
    if (push(session, snapshotOf({ a: String(text) })) !== undefined) sent++;
  }
  t.is(sent, 4);
  const last = snapshotOf({ a: '19' });
  const ack = { responseNonce: response?.nonce ?? '' };
  t.is(changes(session.onRequest(ack, last).response), 'a');
});

test('whatever the order of events, a client ends with the last snapshot, whether it refuses whole or in parts', (t) => {
  const contents = fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd'), fc.constantFrom('1', '2'));
  const events = fc.array(
    fc.oneof(
      fc.record({ kind: fc.constant('change' as const), to: contents }),
      fc.record({ kind: fc.constant('sent' as const) }),
      fc.record({ kind: fc.constant('accept' as const) }),
      // Each bit of the mask says whether the change at that place is taken all the same.
      fc.record({ kind: fc.constant('refuse' as const), taken: fc.integer({ min: 0, max: 15 }) }),
      fc.record({ kind: fc.constant('reconnect' as const) }),
    ),
    { maxLength: 40 },
  );
  const names = fc.constantFrom<readonly string[]>([], ['*'], ['a', 'b'], ['a', 'missing']);
  fc.assert(
    fc.property(contents, events, names, (initial, list, wanted) => {
      let snapshot = snapshotOf(initial);
      let session = new DeltaSession();
      let onWire: SessionResponse | undefined;
      let inbox: SessionResponse[] = [];
      const holds = new Map<string, string>();

      const put = (response: SessionResponse | undefined): void => {
        if (response === undefined) return;
        if (onWire !== undefined) throw new Error('two responses on the way');
        onWire = response;
      };
      const send = (): void => {
        if (onWire === undefined) return;
        inbox.push(onWire);
        onWire = undefined;
        put(session.onSent());
      };
      const answer = (taken: number | undefined): void => {
        const response = inbox.shift();
        if (response === undefined) return;
        const { resources = [], removedResources = [] } = read(response);
        let place = 0;
        const takes = (): boolean => taken === undefined || ((taken >> place++) & 1) === 1;
        for (const { name = '', version = '' } of resources) if (takes()) holds.set(name, version);
        for (const name of removedResources) if (takes()) holds.delete(name);
        const request = { responseNonce: response.nonce };
        if (taken === undefined) {
          put(session.onRequest(request, snapshot).response);
          return;
        }
        put(session.onRequest({ ...request, errorDetail: no }, snapshot).response);
      };
      const connect = (): void => {
        session = new DeltaSession();
        onWire = undefined;
        inbox = [];
        const request = {
          resourceNamesSubscribe: wanted,
          initialResourceVersions: Object.fromEntries(holds),
        };
        put(session.onRequest(request, snapshot).response);
      };

      connect();
      for (const event of list) {
        if (event.kind === 'change') {
          snapshot = snapshotOf(event.to);
          put(session.onSnapshot(snapshot));
        } else if (event.kind === 'sent') send();
        else if (event.kind === 'accept') answer(undefined);
        else if (event.kind === 'refuse') answer(event.taken);
        else connect();
      }
      // A refused snapshot that stays is not pushed again: only a change brings the client further.
      let rounds = 0;
      while (onWire !== undefined || inbox.length > 0) {
        if (rounds++ > 20) throw new Error('refusals are answered for ever');
        send();
        answer(0);
      }
      if (session.onSnapshot(snapshot) !== undefined) throw new Error('a refused one came again');
      snapshot = snapshotOf({ ...initial, a: 'last', b: 'last', e: 'last' });
      put(session.onSnapshot(snapshot));
      while (onWire !== undefined || inbox.length > 0) {
        send();
        answer(undefined);
      }
      const isWanted = (name: string) =>
        wanted.length === 0 || wanted.includes('*') || wanted.includes(name);
      const target = Object.entries(versionsOf(snapshot)).filter(([name]) => isWanted(name));
      const sorted = [...holds].filter(([name]) => isWanted(name)).sort();
      return JSON.stringify(sorted) === JSON.stringify(target);
    }),
    { numRuns: 500 },
  );
  t.pass();
});
