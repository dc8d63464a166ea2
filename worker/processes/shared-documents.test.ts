import test from 'ava';
import { parseRuleDocument } from '../../shared/rules/document/document.ts';
import type { RuleDocument } from '../../shared/rules/rule-document.ts';
import { PartNumbers } from '../../shared/rules/thread/document-parts.ts';
import { pluck } from '../../test/support/pluck.ts';
import { ruleText } from '../../test/support/rules-folder.ts';
import type { ToProcess } from './message.ts';
import { RulesReceiver, RulesSender } from './shared-documents.ts';

function documentOf(domain: string, limit: number): RuleDocument {
  const { document } = parseRuleDocument(ruleText(domain, limit), `${domain}.yaml`);
  if (document === undefined) throw new Error('a good document was refused');
  return document;
}

/** A document with `count` rules. */
function largeDocument(count: number): RuleDocument {
  const [rule] = documentOf('large', 1).descriptors;
  if (rule === undefined) throw new Error('there is a rule');
  const descriptors = Array.from({ length: count }, (_, at) => ({ ...rule, value: `v${at}` }));
  return { file: 'large.yaml', domain: 'large', position: undefined, descriptors };
}

/** The document with the rule at `at` replaced by another. */
function changed(document: RuleDocument, at: number): RuleDocument {
  const { descriptors } = document;
  const [rule] = documentOf('large', 2).descriptors;
  if (rule === undefined) throw new Error('there is a rule');
  return { ...document, descriptors: descriptors.with(at, { ...rule, value: `new${at}` }) };
}

/** A process that receives copies of the sent messages, and its sender. */
function setUp(names = new PartNumbers()) {
  const messages: ToProcess[] = [];
  /** Completes the sending of the last message. */
  let leave = () => {};
  let isReachable = false;
  let arrived = Promise.withResolvers<void>();
  const sender = new RulesSender((message) => {
    messages.push(structuredClone(message));
    if (message.kind === 'rules') {
      arrived.resolve();
      arrived = Promise.withResolvers();
    }
    return isReachable ? new Promise((resolve) => (leave = resolve)) : Promise.resolve();
  }, names);
  const receiver = new RulesReceiver();
  /** The documents of each `rules` message, and how many rules were sent for them. */
  function receive() {
    const received: { documents: readonly RuleDocument[]; sent: number }[] = [];
    let sent = 0;
    for (const message of messages.splice(0)) {
      if (message.kind === 'document') {
        sent += message.piece.descriptors.length;
        receiver.receiveDocument(message);
      } else if (message.kind === 'rules') {
        received.push({ documents: receiver.receiveRules(message), sent });
        sent = 0;
      }
    }
    return received;
  }
  return {
    sender,
    messages,
    receive,
    hold: () => {
      isReachable = true;
    },
    letGo() {
      isReachable = false;
      leave();
    },
    /** Sends the documents of one load. */
    async load(documents: readonly RuleDocument[]) {
      const { promise } = arrived;
      sender.use({ documents, atMs: 0 });
      await promise;
      const [received] = receive();
      if (received === undefined) throw new Error('nothing was received');
      return received;
    },
    untilRules: () => arrived.promise,
  };
}

test('a process is sent only what it lacks, and the rest stays the same objects', async (t) => {
  const { load } = setUp();
  const [a, b, c] = [documentOf('a', 1), documentOf('b', 1), documentOf('b', 2)];
  const first = await load([a, b]);
  t.is(first.sent, 2);
  t.deepEqual(first.documents, [a, b]);
  const second = await load([c, a]);
  t.is(second.sent, 1);
  t.deepEqual(second.documents, [c, a]);
  t.is(second.documents[1], first.documents[0], 'the same object');
  t.is((await load([a, b])).sent, 1, 'one that has gone is sent again');
  t.deepEqual((await load([])).documents, []);
});

test('only the new parts of a changed document are sent, to each process those that it lacks', async (t) => {
  const names = new PartNumbers();
  const [one, other] = [setUp(names), setUp(names)];
  const before = largeDocument(3_000);
  const first = await one.load([before]);
  t.is(first.sent, 3_000);
  const after = changed(before, 1_500);
  const second = await one.load([after]);
  t.true(second.sent <= 101, `${second.sent} rules`);
  t.deepEqual(second.documents, [after]);
  t.is(second.documents[0]?.descriptors[0], first.documents[0]?.descriptors[0]);
  const third = await one.load([changed(after, 0)]);
  t.true(third.sent <= 101, 'also of one that was put together');
  t.deepEqual(third.documents, [changed(after, 0)]);
  // A process that started later has nothing yet.
  const late = await other.load([after]);
  t.is(late.sent, 3_000);
  t.deepEqual(late.documents, [after]);
});

test('a piece waits until the previous one was sent, and of the rules that arrive meanwhile only the newest follow', async (t) => {
  const { sender, messages, receive, hold, letGo, untilRules } = setUp();
  const document = largeDocument(300);
  const [second, third] = [changed(document, 0), changed(document, 1)];
  hold();
  sender.use({ documents: [document], atMs: 1 });
  await new Promise(setImmediate);
  sender.use({ documents: [second], atMs: 2 });
  sender.sendAfter({ kind: 'listen', hasListened: false });
  sender.use({ documents: [third], atMs: 3 });
  await new Promise(setImmediate);
  t.is(messages.length, 1, 'the first piece has not left');
  const first = untilRules();
  letGo();
  await first;
  await untilRules();
  const ends = messages.filter(({ kind }) => kind !== 'document');
  t.deepEqual(
    ends.map((message) => (message.kind === 'rules' ? message.atMs : message.kind)),
    [1, 'listen', 3],
  );
  t.deepEqual(pluck(receive(), 'documents'), [[document], [third]]);
});

test('when a process ends between two pieces, nothing is sent to its successor', async (t) => {
  const { sender, messages, hold, letGo } = setUp();
  hold();
  sender.use({ documents: [largeDocument(300)], atMs: 0 });
  await new Promise(setImmediate);
  sender.close();
  letGo();
  for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
  sender.use({ documents: [], atMs: 0 });
  sender.sendAfter({ kind: 'listen', hasListened: false });
  t.is(messages.length, 1);
});
