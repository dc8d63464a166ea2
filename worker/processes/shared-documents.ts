// Sends rules from the primary to the processes that decide: a document is sent once to each, however many
// loads it is part of. In pieces, so that a process that reads it decides meanwhile.
import { deserialize, serialize } from 'node:v8';
import type { RuleDocument } from '../../shared/rules/rule-document.ts';
import {
  createDocumentJoiner,
  toDocumentPieces,
} from '../../shared/rules/thread/document-pieces.ts';
import type { ToProcess } from './message.ts';

type RulesMessage = ToProcess & { readonly kind: 'rules' };

/** The primary's side. */
export interface DocumentSender {
  /** Replaces the previous documents. `atMs`: wall time by which some of their rules have ended. */
  use(documents: readonly RuleDocument[], atMs: number): void;
  /** The message for a process that has `known`, which is updated; undefined before the first rules. */
  toMessage(known: Set<number>): RulesMessage | undefined;
}

export function createDocumentSender(): DocumentSender {
  const numbers = new WeakMap<RuleDocument, number>();
  let last = 0;
  let currentMs = 0;
  let current: readonly (readonly [number, RuleDocument])[] | undefined;

  function numberOf(document: RuleDocument): number {
    const number = numbers.get(document) ?? ++last;
    numbers.set(document, number);
    return number;
  }

  return {
    use(documents, atMs) {
      currentMs = atMs;
      current = documents.map((document) => [numberOf(document), document] as const);
    },
    toMessage(known) {
      if (current === undefined) return undefined;
      const added = current
        .filter(([number]) => !known.has(number))
        .map(([number, document]) => ({
          number,
          pieces: Array.from(toDocumentPieces(document), (piece) => serialize(piece)),
        }));
      known.clear();
      for (const [number] of current) known.add(number);
      return { kind: 'rules', numbers: [...known], added, atMs: currentMs };
    },
  };
}

/** The side of a process that decides: from a message to all documents, the same objects as before where
 * they did not change. Yields where decisions may be made. */
export function createDocumentReceiver(): (
  message: RulesMessage,
) => Generator<void, readonly RuleDocument[]> {
  let known: ReadonlyMap<number, RuleDocument> = new Map();
  return function* receive({ numbers, added }) {
    const fresh = new Map<number, RuleDocument>();
    for (const { number, pieces } of added) {
      const joiner = createDocumentJoiner();
      for (const piece of pieces) {
        joiner.take(deserialize(piece));
        yield;
      }
      fresh.set(number, joiner.toDocument());
    }
    const documents = new Map<number, RuleDocument>();
    for (const number of numbers) {
      const document = fresh.get(number) ?? known.get(number);
      if (document === undefined) throw new Error(`document ${number} was never sent`);
      documents.set(number, document);
    }
    known = documents;
    return [...documents.values()];
  };
}
