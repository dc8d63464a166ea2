import test from 'ava';
import { runAtOnce } from '../../shared/in-slices.ts';
import { parseRuleDocument } from '../../shared/rules/document/document.ts';
import type { RuleDocument } from '../../shared/rules/rule-document.ts';
import { ruleText } from '../../test/support/rules-folder.ts';
import { createDocumentReceiver, createDocumentSender } from './shared-documents.ts';

function documentOf(domain: string, limit: number): RuleDocument {
  const { document } = parseRuleDocument(ruleText(domain, limit), `${domain}.yaml`);
  if (document === undefined) throw new Error('a good document was refused');
  return document;
}

test('a process is sent what it has not got, and keeps the rest as it is', (t) => {
  const sender = createDocumentSender();
  t.is(sender.toMessage(new Set()), undefined, 'there are no rules yet');
  const [a, b, c] = [documentOf('a', 1), documentOf('b', 1), documentOf('b', 2)];
  const known = new Set<number>();
  const receive = createDocumentReceiver();
  const load = (documents: readonly RuleDocument[]) => {
    sender.use(documents, 0);
    const message = sender.toMessage(known);
    if (message === undefined) throw new Error('there are rules');
    return { sent: message.added.length, documents: runAtOnce(receive(message)) };
  };
  const first = load([a, b]);
  t.is(first.sent, 2);
  t.deepEqual(first.documents, [a, b]);
  const second = load([a, c]);
  t.is(second.sent, 1);
  t.deepEqual(second.documents, [a, c]);
  t.is(second.documents[0], first.documents[0], 'the same object');
  t.is(load([a, b]).sent, 1, 'one that has gone is sent again');
  t.deepEqual(load([]).documents, []);
  // One that is started later has nothing yet.
  sender.use([a, c], 0);
  const late = sender.toMessage(new Set());
  t.deepEqual(late && runAtOnce(createDocumentReceiver()(late)), [a, c]);
});
