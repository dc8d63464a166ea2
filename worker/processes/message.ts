// The messages between the primary and the processes that decide. Each side trusts the other: both are this program.
// fork-process.ts and main.ts carry them.
import type { DocumentPiece } from '../../shared/rules/thread/document-pieces.ts';
import type { Environment } from '../../shared/settings/setting.ts';
import type { CountersAnswer, CountersAsked } from '../decision/counter-access.ts';
import type { UnmatchedSample } from '../decision/unmatched-sampler.ts';
import type { LimitedShare } from '../fleet/limited-values.ts';
import type { RecordBatch } from '../recording/record-buffer.ts';
import type { ServingAddresses } from '../serving.ts';
import type { StatisticsReport } from './statistics-report.ts';

/** A piece of a document, in order. The document is in force when a `rules` message has its number. */
export interface DocumentMessage {
  readonly kind: 'document';
  readonly number: number;
  /** The number of the document in force whose parts the pieces reuse; undefined if all parts are new. */
  readonly changedFrom: number | undefined;
  readonly piece: DocumentPiece;
}

/** The documents in force from now on; all of them were sent before. */
export interface RulesMessage {
  readonly kind: 'rules';
  readonly numbers: readonly number[];
  /** The wall time that determines which of their rules have ended. */
  readonly atMs: number;
}

/** A message from the primary; `start` is the first. */
export type ToProcess =
  | {
      readonly kind: 'start';
      readonly environment: Environment;
      /** The process' number, from 1. A replacement has the number of the process it replaces. */
      readonly number: number;
      /** Whether this process writes, for all of them, the log lines that each would write at its start. */
      readonly logsForAll: boolean;
    }
  | DocumentMessage
  | RulesMessage
  /** The worker's health, which all processes report. */
  | { readonly kind: 'health'; readonly healthy: boolean }
  | {
      readonly kind: 'listen';
      /** Whether one of the processes is or was listening. */
      readonly hasListened: boolean;
    }
  /** The answer has the same `id`; it is sent when the time is over, or when the request is cancelled. */
  | {
      readonly kind: 'profile';
      readonly id: number;
      readonly of: 'cpu' | 'heap';
      readonly durationMs: number;
    }
  | { readonly kind: 'end-profile'; readonly id: number }
  /** The answer has the same `id`. */
  | {
      readonly kind: 'counters';
      readonly id: number;
      readonly asked: CountersAsked;
      readonly reset: boolean;
      readonly timeoutMs: number;
    }
  | { readonly kind: 'forget-counters'; readonly asked: CountersAsked }
  | { readonly kind: 'stop'; readonly graceMs: number };

/** A message from a process that decides. */
export type FromProcess =
  /** The program listens for messages; fork-process.ts sends none before. */
  | { readonly kind: 'loaded' }
  /** The counter store has answered. */
  | { readonly kind: 'connected' }
  | { readonly kind: 'listening'; readonly addresses: ServingAddresses }
  /** The process cannot start, and ends; the reason is human-readable. */
  | { readonly kind: 'failed'; readonly message: string }
  /** Whether the process reaches its store; sent at each change. */
  | { readonly kind: 'store'; readonly healthy: boolean }
  | { readonly kind: 'profile'; readonly id: number; readonly result: Uint8Array | 'busy' }
  | { readonly kind: 'counters'; readonly id: number; readonly answer: CountersAnswer }
  /** Sent each second, so that silence indicates a hang; in parts when much has changed. */
  | {
      readonly kind: 'report';
      readonly statistics: StatisticsReport;
      /** Samples taken since the last report. */
      readonly unmatched: readonly UnmatchedSample[];
      /** The process' share of the most limited values; undefined without a link to a control plane. */
      readonly limited: LimitedShare | undefined;
      /** The decisions that the process has recorded; undefined without any. */
      readonly recorded: RecordBatch | undefined;
      /** Lines for the debug port. */
      readonly description: readonly string[];
    };
