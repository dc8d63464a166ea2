// Tests both discovery protocols without a network, as text: sotw-session.txt and delta-session.txt. Properties that
// hold in any order of events are tested below.
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { loadDiscoveryProtos, rateLimitConfigTypeUrl } from '../../../shared/wire/discovery.ts';
import type {
  DeltaDiscoveryRequestMessage,
  DeltaDiscoveryResponseMessage,
  DiscoveryRequestMessage,
} from '../../../shared/wire/discovery-messages.ts';
import { testScenarios } from '../../../test/support/scenarios.ts';
import { createResource, createSnapshot, type Snapshot } from '../snapshot/snapshot.ts';
import { DeltaSession } from './delta-session.ts';
import type { RequestOutcome, Session, SessionResponse } from './session.ts';
import { SotwSession } from './sotw-session.ts';

const { aggregated } = loadDiscoveryProtos();
const no = { code: 0, message: 'no' };

function snapshotOf(contents: Readonly<Record<string, string>>): Snapshot {
  return createSnapshot(
    Object.entries(contents).map(([name, text]) =>
      createResource(name, Buffer.from(`${name}=${text}`)),
    ),
  );
}

function versionsOf(snapshot: Snapshot): Record<string, string> {
  return Object.fromEntries([...snapshot.resources].map(([name, { version }]) => [name, version]));
}

/** Parses `a=1,b=2`. */
function toSnapshot(text: string): Snapshot {
  const pairs = text.split(',').filter((pair) => pair !== '');
  return snapshotOf(Object.fromEntries(pairs.map((pair) => pair.split('='))));
}

function readDelta(response: SessionResponse): DeltaDiscoveryResponseMessage {
  return aggregated.DeltaAggregatedResources.responseDeserialize(Buffer.concat([...response.body]));
}

/** The texts of the resources, and the names of removed ones, with `-`. */
function changesOf(response: SessionResponse, isDelta: boolean): string[] {
  if (isDelta) {
    const { resources = [], removedResources = [], ...message } = readDelta(response);
    if (message.typeUrl !== rateLimitConfigTypeUrl) throw new Error(`type ${message.typeUrl}`);
    const texts = resources.map(({ name = '', version, resource }) => {
      const text = String(resource?.value);
      const isRight = version === toSnapshot(text).resources.get(name)?.version;
      return isRight ? text : `${text} under a wrong version`;
    });
    return [...texts, ...removedResources.map((name) => `-${name}`)];
  }
  const bytes = Buffer.concat([...response.body]);
  const { resources = [] } = aggregated.StreamAggregatedResources.responseDeserialize(bytes);
  return resources.map(({ value }) => String(value));
}

/** A client in a scenario. */
class Client {
  readonly #isDelta: boolean;
  readonly #session: Session<DiscoveryRequestMessage & DeltaDiscoveryRequestMessage>;
  readonly #versions = new Map([['', 'nothing']]);
  #snapshot: Snapshot | undefined;
  /** Responses are written at once, unless the client is slow. */
  #isSlow = false;

  constructor(isDelta: boolean) {
    this.#isDelta = isDelta;
    this.#session = isDelta ? new DeltaSession() : new SotwSession();
  }

  run([command = '', ...words]: readonly string[]): string {
    const lines = [...this.#step(command, words)];
    return (lines.length === 0 ? ['nothing'] : lines).join('\n');
  }

  *#step(command: string, words: readonly string[]): Generator<string> {
    if (command === 'snapshot') {
      this.#snapshot = this.#know(words.join(','));
      yield* this.#show(this.#session.onSnapshot(this.#snapshot));
    } else if (command === 'slow') this.#isSlow = true;
    else if (command === 'sent') yield* this.#show(this.#session.onSent());
    else if (command === 'wants') {
      const version = this.#session.wantedVersion(this.#know(words.join(',')));
      yield `${version === undefined ? 'nothing' : this.#nameOf(version)}, ${this.#session.wantedNames} names are kept`;
    } else {
      const outcome = this.#session.onRequest(this.#toRequest(words), this.#snapshot);
      yield* this.#showAnswer(outcome);
      yield* this.#show(outcome.response);
    }
  }

  #toRequest(words: readonly string[]): DiscoveryRequestMessage & DeltaDiscoveryRequestMessage {
    const after = (mark: string) =>
      words.filter((word) => word.startsWith(mark)).map((word) => word.slice(mark.length));
    const [version] = after('version:');
    return {
      resourceNames: words.filter((word) => /^[\w*]+$/.test(word) && word !== 'refuse'),
      resourceNamesSubscribe: after('+'),
      resourceNamesUnsubscribe: after('-'),
      initialResourceVersions: Object.assign(
        {},
        ...after('has:').map((text) => versionsOf(toSnapshot(text))),
      ),
      responseNonce: after('nonce:')[0] ?? '',
      versionInfo: version === undefined ? '' : this.#know(version).version,
      ...(words.includes('refuse') && { errorDetail: no }),
    };
  }

  *#showAnswer({ answer, changesNames }: RequestOutcome): Generator<string> {
    if (answer?.kind === 'refuses') {
      const what = answer.version === undefined ? 'an earlier one' : this.#nameOf(answer.version);
      yield `refuses ${what} (${answer.text}), holds ${this.#nameOf(answer.holds)}`;
    } else if (answer !== undefined) yield `${answer.kind} ${this.#nameOf(answer.version)}`;
    if (changesNames) yield 'changes names';
  }

  *#show(response: SessionResponse | undefined): Generator<string> {
    if (response === undefined) return;
    const changes = changesOf(response, this.#isDelta).join(' ');
    yield `response ${response.nonce} to hold ${this.#nameOf(response.version)}: ${changes || 'no resources'}`;
    if (!this.#isSlow) yield* this.#show(this.#session.onSent());
  }

  /** Registers the versions of all parts of a snapshot. */
  #know(text: string): Snapshot {
    const pairs = text
      .split(',')
      .filter((pair) => pair !== '')
      .sort();
    for (let mask = 0; mask < 2 ** pairs.length; mask++) {
      const part = pairs.filter((_, index) => (mask >> index) & 1);
      this.#versions.set(toSnapshot(part.join(',')).version, part.join(' ') || 'no resources');
    }
    return toSnapshot(text);
  }

  #nameOf(version: string): string {
    return this.#versions.get(version) ?? version;
  }
}

for (const protocol of ['sotw', 'delta'] as const) {
  const clients = new WeakMap<ExecutionContext, Client>();
  testScenarios(test, new URL(`${protocol}-session.txt`, import.meta.url), (words, { t }) => {
    const client = clients.get(t) ?? new Client(protocol === 'delta');
    clients.set(t, client);
    return { out: client.run(words) };
  });
}

test('clients that want the same share its bytes', (t) => {
  const [first, second] = [toSnapshot('a=1,b=1'), toSnapshot('a=2,b=1')];
  for (const Protocol of [SotwSession, DeltaSession]) {
    const bodies = Array.from({ length: 2 }, () => {
      const session = new Protocol();
      const all = session.onRequest({}, first).response;
      session.onSent();
      session.onRequest({ versionInfo: first.version, responseNonce: all?.nonce ?? '' }, first);
      return [all?.body, session.onSnapshot(second)?.body];
    });
    t.is(bodies[0]?.[0], bodies[1]?.[0]);
    t.is(bodies[0]?.[1], bodies[1]?.[1]);
    t.truthy(bodies[0]?.[1]);
  }
});

test('a client that wants everything gets the snapshot itself, and its resources are not iterated', (t) => {
  const session = new SotwSession();
  session.onRequest({}, toSnapshot('a=1'));
  const untouchable = {
    version: 'whole',
    get resources(): never {
      throw new Error('the resources were read');
    },
  };
  t.is(session.wantedVersion(untouchable), 'whole');
});

test('resources wanted by name are selected once per snapshot, however often they are requested', (t) => {
  const [first, second] = [toSnapshot('a=1,b=1'), toSnapshot('a=2,b=1')];
  const session = new SotwSession();
  session.onRequest({ resourceNames: ['a'] }, first);
  let reads = 0;
  const counting = {
    version: second.version,
    get resources() {
      reads++;
      return second.resources;
    },
  };
  const version = session.wantedVersion(counting);
  for (let turn = 0; turn < 5; turn++) t.is(session.wantedVersion(counting), version);
  t.is(reads, 1);
});

test('sotw: whatever the order of events, a client ends with the last snapshot and gets no version twice in a row', (t) => {
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
        const { nonce: responseNonce, version } = response;
        const request = refuses
          ? { responseNonce, versionInfo: holds, errorDetail: no }
          : { responseNonce, versionInfo: version };
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

test('delta: whatever the order of events, a client ends with the last snapshot, whether it refuses it whole or in parts', (t) => {
  const contents = fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd'), fc.constantFrom('1', '2'));
  const events = fc.array(
    fc.oneof(
      fc.record({ kind: fc.constant('change' as const), to: contents }),
      fc.record({ kind: fc.constant('sent' as const) }),
      fc.record({ kind: fc.constant('accept' as const) }),
      // Each bit of the mask decides whether the client still applies the change at that index.
      fc.record({
        kind: fc.constant('refuse' as const),
        accepted: fc.integer({ min: 0, max: 15 }),
      }),
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
      const answer = (accepted: number | undefined): void => {
        const response = inbox.shift();
        if (response === undefined) return;
        const { resources = [], removedResources = [] } = readDelta(response);
        let index = 0;
        const accepts = (): boolean => accepted === undefined || ((accepted >> index++) & 1) === 1;
        for (const { name = '', version = '' } of resources)
          if (accepts()) holds.set(name, version);
        for (const name of removedResources) if (accepts()) holds.delete(name);
        const request = { responseNonce: response.nonce };
        if (accepted === undefined) {
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
        else if (event.kind === 'refuse') answer(event.accepted);
        else connect();
      }
      // A refused snapshot is not pushed again by itself: only a change makes progress.
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
