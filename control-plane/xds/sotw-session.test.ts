// The state-of-the-world protocol without a network.
import test from 'ava';
import fc from 'fast-check';
import type { DiscoveryRequestMessage } from '../../shared/wire/discovery-messages.ts';
import { createResource, createSnapshot, type Snapshot } from '../snapshot/snapshot.ts';
import type { SessionResponse } from './session.ts';
import { SotwSession } from './sotw-session.ts';

function snapshotOf(contents: Readonly<Record<string, string>>): Snapshot {
  return createSnapshot(
    Object.entries(contents).map(([name, text]) =>
      createResource(name, Buffer.from(`${name}=${text}`)),
    ),
  );
}

const first = snapshotOf({ a: '1', b: '1' });
const second = snapshotOf({ a: '2', b: '1' });

function start(request: DiscoveryRequestMessage = {}, snapshot: Snapshot = first) {
  const session = new SotwSession();
  const outcome = session.onRequest(request, snapshot);
  return { session, ...outcome };
}

function accept({ version, nonce }: SessionResponse): DiscoveryRequestMessage {
  return { versionInfo: version, responseNonce: nonce };
}

function refuse(response: SessionResponse, versionInfo = ''): DiscoveryRequestMessage {
  return { versionInfo, responseNonce: response.nonce, errorDetail: { code: 0, message: 'no' } };
}

function sent<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Error('nothing was sent');
  return value;
}

test('a first request gets everything under the version of the snapshot', (t) => {
  const { response, answer } = start();
  t.is(response?.version, first.version);
  t.is(answer, undefined);
  const bytes = Buffer.concat([...sent(response).body]);
  for (const { any } of first.resources.values()) t.true(bytes.includes(any));
});

test('two clients share the bytes of one response', (t) => {
  t.is(start().response?.body, start().response?.body);
});

test('a first request that names the current version gets nothing, and counts as holding it', (t) => {
  const { response, answer, session } = start({
    versionInfo: first.version,
    responseNonce: 'of another stream',
  });
  t.is(response, undefined);
  t.deepEqual(answer, { kind: 'holds', version: first.version });
  t.is(session.onSnapshot(second)?.version, second.version);
});

test('a first request is not stale, whatever nonce it carries', (t) => {
  t.is(start({ responseNonce: '17', versionInfo: 'old' }).response?.version, first.version);
});

test('an empty snapshot is a response with no resources', (t) => {
  const { response } = start({}, snapshotOf({}));
  t.not(response?.version, '');
  t.false(Buffer.concat([...sent(response).body]).includes(Buffer.from([0x12])));
});

test('without a snapshot the request waits for one', (t) => {
  const session = new SotwSession();
  t.is(session.onRequest({}, undefined).response, undefined);
  t.is(session.onSnapshot(first)?.version, first.version);
});

test('an ACK is recorded once and answered by nothing', (t) => {
  const { session, response } = start();
  t.is(session.onSent(), undefined);
  const ack = accept(sent(response));
  t.deepEqual(session.onRequest(ack, first), {
    response: undefined,
    answer: { kind: 'holds', version: first.version },
    changesNames: false,
  });
  t.deepEqual(session.onRequest(ack, first), {
    response: undefined,
    answer: undefined,
    changesNames: false,
  });
});

test('an unchanged snapshot pushes nothing, even as another object', (t) => {
  const { session, response } = start();
  session.onSent();
  session.onRequest(accept(sent(response)), first);
  t.is(session.onSnapshot(snapshotOf({ b: '1', a: '1' })), undefined);
});

test('a refusal with code 0 is a refusal, and the version is not pushed again', (t) => {
  const { session, response } = start();
  session.onSent();
  t.deepEqual(session.onRequest(refuse(sent(response)), first), {
    response: undefined,
    answer: { kind: 'refuses', version: first.version, text: 'no', holds: '' },
    changesNames: false,
  });
  t.is(session.onSnapshot(first), undefined);
  t.is(session.onSnapshot(second)?.version, second.version);
});

test('going back to the accepted version after a refusal is pushed: the client may have kept parts', (t) => {
  const { session, response } = start();
  session.onSent();
  session.onRequest(accept(sent(response)), first);
  const pushed = sent(session.onSnapshot(second));
  session.onSent();
  session.onRequest(refuse(pushed, first.version), second);
  t.is(session.onSnapshot(first)?.version, first.version);
});

test('a request changes names when it has others than the one before, unless it is the first', (t) => {
  const { session, changesNames } = start({ resourceNames: ['a', 'a'] });
  t.false(changesNames);
  t.false(session.onRequest({ resourceNames: ['a', 'a'] }, second).changesNames);
  t.true(session.onRequest({ resourceNames: ['b'] }, second).changesNames);
  t.true(session.onRequest({ resourceNames: ['b', 'a'] }, second).changesNames);
  t.true(session.onRequest({}, second).changesNames);
});

test('a stale nonce is ignored, with the names it carries', (t) => {
  const { session, response } = start();
  session.onSent();
  const pushed = sent(session.onSnapshot(second));
  session.onSent();
  const stale = { ...refuse(sent(response)), resourceNames: ['a'] };
  t.deepEqual(session.onRequest(stale, second), {
    response: undefined,
    answer: undefined,
    changesNames: false,
  });
  t.deepEqual(session.onRequest(accept(pushed), second).answer, {
    kind: 'holds',
    version: second.version,
  });
});

test('a client that does not read gets the newest snapshot next, not those between', (t) => {
  const { session } = start();
  t.is(session.onSnapshot(second), undefined);
  const third = snapshotOf({ a: '3' });
  t.is(session.onSnapshot(third), undefined);
  t.is(session.onSent()?.version, third.version);
  t.is(session.onSent(), undefined);
});

test('a change that is taken back before it could be sent is not sent', (t) => {
  const { session } = start();
  session.onSnapshot(second);
  session.onSnapshot(first);
  t.is(session.onSent(), undefined);
});

test('names choose resources, and a change elsewhere pushes nothing', (t) => {
  const { session, response } = start({ resourceNames: ['b', 'missing'] });
  const bytes = Buffer.concat([...sent(response).body]);
  t.true(bytes.includes(first.resources.get('b')?.any ?? 'x'));
  t.false(bytes.includes(first.resources.get('a')?.any ?? 'x'));
  session.onSent();
  t.is(session.onSnapshot(second), undefined);
  t.not(session.onSnapshot(snapshotOf({ a: '2', b: '2' })), undefined);
});

test('a version that was held for other names does not pass for theirs', (t) => {
  const { response } = start({ versionInfo: first.version, resourceNames: ['a'] });
  t.not(response, undefined);
});

test('names that are given up and added again are sent again', (t) => {
  const { session, response } = start({ resourceNames: ['a', 'b'] });
  const { nonce, version } = sent(response);
  session.onRequest({ responseNonce: nonce, resourceNames: ['a'] }, first);
  session.onRequest({ responseNonce: nonce, resourceNames: ['a', 'b'] }, first);
  t.is(session.onSent()?.version, version);
});

test('no names after names means nothing; "*" means everything', (t) => {
  const { session, response } = start({ resourceNames: ['a'] });
  session.onSent();
  const { nonce } = sent(response);
  t.is(session.onRequest({ responseNonce: nonce, resourceNames: [] }, first).response, undefined);
  t.is(session.onSnapshot(second), undefined);
  const all = { responseNonce: nonce, resourceNames: ['*'] };
  t.is(session.onRequest(all, second).response?.version, second.version);
});

test('a wanted set has the version of the response for it, of the whole under "*", none for nothing', (t) => {
  const { session, response } = start({ resourceNames: ['b', 'missing'] });
  const { nonce, version } = sent(response);
  t.not(version, first.version);
  t.is(session.wantedVersion(first), version);
  t.is(session.wantedVersion(second), version);
  t.not(session.wantedVersion(snapshotOf({ b: '2' })), version);
  session.onRequest({ responseNonce: nonce, resourceNames: ['a'] }, first);
  t.is(session.wantedVersion(first), session.onSent()?.version);
  session.onRequest({ responseNonce: '2', resourceNames: [] }, first);
  t.is(session.wantedVersion(first), undefined);
  session.onRequest({ responseNonce: '2', resourceNames: ['*'] }, first);
  t.is(session.wantedVersion(first), first.version);
});

test('a client of everything wants the snapshot as it is, whose resources are not looked at', (t) => {
  const { session } = start();
  const untouchable = {
    version: 'whole',
    get resources(): never {
      throw new Error('the resources were looked at');
    },
  };
  t.is(session.wantedVersion(untouchable), 'whole');
});

test('resources wanted by name are selected once for one snapshot, however often they are asked for', (t) => {
  const { session } = start({ resourceNames: ['a'] });
  let looks = 0;
  const counting = {
    version: second.version,
    get resources() {
      looks++;
      return second.resources;
    },
  };
  const version = session.wantedVersion(counting);
  for (let turn = 0; turn < 5; turn++) t.is(session.wantedVersion(counting), version);
  t.is(looks, 1);
});

test('a subscription changed before the first response counts, with the nonce of another stream', (t) => {
  const { session } = start({ versionInfo: first.version, responseNonce: 'old' });
  const change = { versionInfo: first.version, responseNonce: 'old', resourceNames: ['a'] };
  t.not(session.onRequest(change, first).response, undefined);
});

test('the exchange of the reference client: all, NACK with code 0, an old nonce on a new stream', (t) => {
  const bad = second;
  const before = new SotwSession();
  const one = sent(before.onRequest({ versionInfo: '', responseNonce: '' }, first).response);
  before.onSent();
  before.onRequest(accept(one), first);
  const two = sent(before.onSnapshot(bad));
  before.onSent();
  const nack = before.onRequest(refuse(two, one.version), bad);
  t.deepEqual(nack.answer, {
    kind: 'refuses',
    version: bad.version,
    text: 'no',
    holds: first.version,
  });
  t.is(nack.response, undefined);

  const after = new SotwSession();
  const resumed = { versionInfo: one.version, responseNonce: two.nonce };
  t.is(after.onRequest(resumed, first).response, undefined);
});

test('whatever the order of events, a client ends with the last snapshot and gets no version twice in a row', (t) => {
  const contents = fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.constantFrom('1', '2'));
  const events = fc.array(
    fc.oneof(
      fc.record({ kind: fc.constant('change' as const), to: contents }),
      fc.record({ kind: fc.constant('sent' as const) }),
      fc.record({ kind: fc.constant('answer' as const), refuses: fc.boolean() }),
      fc.record({ kind: fc.constant('reconnect' as const) }),
    ),
    { maxLength: 40 },
  );
  fc.assert(
    fc.property(contents, events, (initial, list) => {
      let snapshot = snapshotOf(initial);
      let session = new SotwSession();
      let onWire: SessionResponse | undefined;
      const inbox: SessionResponse[] = [];
      let holds = '';
      let lastSent: string | undefined;

      const put = (response: SessionResponse | undefined): void => {
        if (response === undefined) return;
        if (onWire !== undefined) throw new Error('two responses on the way');
        if (response.version === lastSent) throw new Error(`${lastSent} was sent again`);
        lastSent = response.version;
        onWire = response;
      };
      const send = (): void => {
        if (onWire === undefined) return;
        inbox.push(onWire);
        onWire = undefined;
        put(session.onSent());
      };
      const answer = (refuses: boolean): void => {
        const response = inbox.shift();
        if (response === undefined) return;
        if (!refuses) holds = response.version;
        const request = refuses ? refuse(response, holds) : accept(response);
        put(session.onRequest(request, snapshot).response);
      };

      put(session.onRequest({}, snapshot).response);
      for (const event of list) {
        if (event.kind === 'change') {
          snapshot = snapshotOf(event.to);
          put(session.onSnapshot(snapshot));
        } else if (event.kind === 'sent') send();
        else if (event.kind === 'answer') answer(event.refuses);
        else {
          session = new SotwSession();
          onWire = undefined;
          inbox.length = 0;
          lastSent = holds;
          const request = { versionInfo: holds, responseNonce: '3' };
          put(session.onRequest(request, snapshot).response);
        }
      }
      snapshot = snapshotOf({ ...initial, last: 'change' });
      put(session.onSnapshot(snapshot));
      while (onWire !== undefined || inbox.length > 0) {
        send();
        answer(false);
      }
      return holds === snapshot.version && session.onSnapshot(snapshot) === undefined;
    }),
    { numRuns: 300 },
  );
  t.pass();
});
