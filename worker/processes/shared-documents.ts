// Sends rules from the primary to a process that decides: only the new parts of changed documents, in pieces, so that
// both sides can serve other callers in between. The next piece is made when the previous one was sent, so a process
// that reads slowly costs no memory.
import { Pauses } from '../../shared/in-slices.ts';
import type { RuleDocument } from '../../shared/rules/rule-document.ts';
import { joinedPartsOf, type PartNames } from '../../shared/rules/thread/document-parts.ts';
import {
  createDocumentJoiner,
  type DocumentJoiner,
  toDocumentPieces,
} from '../../shared/rules/thread/document-pieces.ts';
import type { AcceptedRules } from '../serving.ts';
import type { DocumentMessage, RulesMessage, ToProcess } from './message.ts';

type SentRules = Pick<AcceptedRules, 'documents' | 'atMs'>;

interface SentDocument {
  readonly number: number;
  readonly document: RuleDocument;
  /** The names of all its parts. */
  readonly names: ReadonlySet<string>;
}

/**
 * The primary's side, for one process. Rules that are being sent are always completed, so that changes in quick
 * succession do not prevent each other from arriving; of the rules that arrive meanwhile the newest are sent next.
 */
export class RulesSender {
  /** Resolves when the message was sent, or lost with its process. */
  readonly #send: (message: ToProcess) => Promise<void>;
  readonly #names: PartNames;
  readonly #pauses = new Pauses();
  /** The documents of the last rules, by their files. */
  #sent: ReadonlyMap<string, SentDocument> = new Map();
  #lastNumber = 0;
  #next: SentRules | undefined;
  /** Messages to be sent after the rules. */
  #after: ToProcess[] = [];
  #isSending = false;
  #isClosed = false;

  /** `names` are the same for all processes, so that parts are compared once. */
  constructor(send: (message: ToProcess) => Promise<void>, names: PartNames) {
    this.#send = send;
    this.#names = names;
  }

  use(rules: SentRules): void {
    this.#next = rules;
    void this.#run();
  }

  /** Sends the message when the process has received all rules up to now. */
  sendAfter(message: ToProcess): void {
    this.#after.push(message);
    void this.#run();
  }

  /** Call it when the process has ended: no messages are sent to it. */
  close(): void {
    this.#isClosed = true;
  }

  async #run(): Promise<void> {
    if (this.#isSending) return;
    this.#isSending = true;
    while (!this.#isClosed && (this.#next !== undefined || this.#after.length > 0)) {
      const rules = this.#next;
      this.#next = undefined;
      if (rules !== undefined) await this.#sendRules(rules);
      for (const message of this.#after.splice(0)) await this.#sendUnlessClosed(message);
    }
    this.#isSending = false;
  }

  async #sendRules({ documents, atMs }: SentRules): Promise<void> {
    const sent = new Map<string, SentDocument>();
    for (const document of documents) {
      await this.#pauses.next();
      const before = this.#sent.get(document.file);
      sent.set(
        document.file,
        before?.document === document ? before : await this.#sendDocument(document, before),
      );
    }
    this.#sent = sent;
    const numbers = Array.from(sent.values(), ({ number }) => number);
    await this.#sendUnlessClosed({ kind: 'rules', numbers, atMs });
  }

  async #sendDocument(
    document: RuleDocument,
    before: SentDocument | undefined,
  ): Promise<SentDocument> {
    const number = ++this.#lastNumber;
    const names = new Set<string>();
    const receivers = { names: this.#names, known: before?.names ?? names };
    for (const piece of toDocumentPieces(document, receivers)) {
      await this.#sendUnlessClosed({
        kind: 'document',
        number,
        changedFrom: before?.number,
        piece,
      });
      for (const name of piece.known) names.add(name);
      if (piece.name !== undefined) names.add(piece.name);
      await this.#pauses.next();
    }
    return { number, document, names };
  }

  async #sendUnlessClosed(message: ToProcess): Promise<void> {
    if (!this.#isClosed) await this.#send(message);
  }
}

/** The side of a process that decides: unchanged documents stay the same objects. */
export class RulesReceiver {
  #known: ReadonlyMap<number, RuleDocument> = new Map();
  #fresh = new Map<number, DocumentJoiner>();

  receiveDocument({ number, changedFrom, piece }: DocumentMessage): void {
    let joiner = this.#fresh.get(number);
    if (joiner === undefined) {
      const before = changedFrom === undefined ? undefined : this.#known.get(changedFrom);
      joiner = createDocumentJoiner(before && joinedPartsOf(before));
      this.#fresh.set(number, joiner);
    }
    joiner.receive(piece);
  }

  /** All documents of the rules, in their order. */
  receiveRules({ numbers }: RulesMessage): readonly RuleDocument[] {
    const documents = new Map<number, RuleDocument>();
    for (const number of numbers) {
      const document = this.#fresh.get(number)?.toDocument() ?? this.#known.get(number);
      if (document === undefined) throw new Error(`document ${number} was never sent`);
      documents.set(number, document);
    }
    this.#fresh = new Map();
    this.#known = documents;
    return [...documents.values()];
  }
}
