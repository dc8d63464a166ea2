// The thread's side of diff-job.ts: finds the changes, domain by domain, and sends them as JSON in bytes. It loads nothing
// of the API, which would take the memory that comparisons need.
import { setImmediate } from 'node:timers/promises';
import { runAtOnce } from '../../../shared/in-slices.ts';
import {
  createDocumentJoiner,
  type DocumentJoiner,
} from '../../../shared/rules/thread/document-pieces.ts';
import type { DoJob } from '../../../shared/thread/thread-side.ts';
import { checkRules } from '../../authoring/checked-rules.ts';
import { type ComparedRules, comparing, type RuleChange } from '../../authoring/rule-change.ts';
import type { DiffPiece, DiffQuestion, Sides } from './diff-job.ts';
import { type RuleChangeJson, toRuleChangeJson } from './rule-change-json.ts';

/** Of JSON, in one message. */
const charactersAtOnce = 64 * 1024;

export const doDiffJob: DoJob = async (next, send, check) => {
  const { nowMs } = next() as DiffQuestion;
  const changes = new WrittenList(send);
  const compare = (joiners: Sides<DocumentJoiner[]>) => {
    const before = toCompared(joiners.before, nowMs);
    const after = toCompared(joiners.after, nowMs);
    check();
    const toItem = (change: RuleChange) => changes.add(toRuleChangeJson(change));
    runAtOnce(comparing(before, after, toItem), check);
  };
  let joiners: Sides<DocumentJoiner[]> = { before: [], after: [] };
  let joiner: DocumentJoiner | undefined;
  for (
    let piece = next() as DiffPiece | undefined;
    piece;
    piece = next() as DiffPiece | undefined
  ) {
    if ('side' in piece) {
      joiner = createDocumentJoiner();
      joiners[piece.side].push(joiner);
    } else if ('ends' in piece) {
      const complete = joiners;
      joiners = { before: [], after: [] };
      joiner = undefined;
      compare(complete);
      // The target of a WeakRef, here the lookups of the domain, stays alive until the turn ends.
      await setImmediate();
    } else if ('ofGroups' in piece) for (const change of piece.ofGroups) changes.add(change);
    else joiner?.receive(piece);
  }
  changes.end();
};

/** Writes a list as JSON, and sends it in bytes. */
class WrittenList {
  readonly #send: (part: Uint8Array) => void;
  readonly #encoder = new TextEncoder();
  #text = '[';
  #mark = '';

  constructor(send: (part: Uint8Array) => void) {
    this.#send = send;
  }

  add(item: RuleChangeJson): void {
    this.#text += this.#mark + JSON.stringify(item);
    this.#mark = ',';
    if (this.#text.length >= charactersAtOnce) this.#flush();
  }

  end(): void {
    this.#text += ']';
    this.#flush();
  }

  #flush(): void {
    this.#send(this.#encoder.encode(this.#text));
    this.#text = '';
  }
}

function toCompared(joiners: readonly DocumentJoiner[], nowMs: number): ComparedRules {
  const documents = joiners.map((each) => each.toDocument());
  // They were already checked on the main thread.
  const checked = checkRules(documents, { mergeDomains: true }, nowMs);
  if (!checked.ok) throw new Error(checked.problems[0]?.message);
  return { ruleSet: checked.rules, documents };
}
