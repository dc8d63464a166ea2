// The messages between the primary and the processes that decide. Each side trusts the other: both are
// this program. fork-process.ts and main.ts carry them.
import type { DocumentPiece } from '../../shared/rules/thread/document-pieces.ts';
import type { Environment } from '../../shared/settings/setting.ts';
import type { CountersAnswer, CountersAsked } from '../decision/counter-access.ts';
import type { UnmatchedSample } from '../decision/unmatched-sampler.ts';
import type { LimitedShare } from '../fleet/limited-values.ts';
import type { RecordBatch } from '../recording/record-buffer.ts';
import type { ServingAddresses } from '../serving.ts';
import type { StatisticsReport } from './statistics-report.ts';

/** A piece of a document, in order. It is in force when a `rules` has its number. */
export interface DocumentMessage {
  readonly kind: 'document';
  readonly number: number;
  /** The number of the document in force whose parts the pieces reuse; undefined where all parts are new. */
  readonly changedFrom: number | undefined;
  readonly piece: DocumentPiece;
}

/** The documents in force from now on, all of which were sent. */
export interface RulesMessage {
  readonly kind: 'rules';
  readonly numbers: readonly number[];
  /** The wall time by which some of their rules have ended. */
  readonly atMs: number;
}

/** A message from the primary; `start` comes first. */
export type ToProcess =
  | {
      readonly kind: 'start';
      readonly environment: Environment;
      /** Processes are numbered from 1. A replacement has the number of the process it replaces. */
      readonly number: number;
      /** Log lines that all processes would write at the start; one writes them for all. */
      readonly logsForAll: boolean;
    }
  | DocumentMessage
  | RulesMessage
  /** The worker's health, which all processes report. */
  | { readonly kind: 'health'; readonly healthy: boolean }
  | {
      readonly kind: 'listen';
      /** Whether one of the processes is listening, or was. */
      readonly hasListened: boolean;
    }
  /** The answer has the same `id`, and comes at the end of the time or of the request. */
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
  /** Its program listens for messages, of which fork-process.ts sends none before. */
  | { readonly kind: 'loaded' }
  /** The counter store has answered. */
  | { readonly kind: 'connected' }
  | { readonly kind: 'listening'; readonly addresses: ServingAddresses }
  /** It cannot start, and ends; the reason is for people. */
  | { readonly kind: 'failed'; readonly message: string }
  /** Whether it reaches its store, at each change. */
  | { readonly kind: 'store'; readonly healthy: boolean }
  | { readonly kind: 'profile'; readonly id: number; readonly result: Uint8Array | 'busy' }
  | { readonly kind: 'counters'; readonly id: number; readonly answer: CountersAnswer }
  /** Each second, so that silence shows a hang; in parts when much has changed. */
  | {
      readonly kind: 'report';
      readonly statistics: StatisticsReport;
      /** Taken since the last report. */
      readonly unmatched: readonly UnmatchedSample[];
      /** The process' share of the most limited values; undefined where there is no link to a control plane. */
      readonly limited: LimitedShare | undefined;
      /** The decisions that the process has recorded; undefined where there are none. */
      readonly recorded: RecordBatch | undefined;
      /** Lines for the debug port. */
      readonly description: readonly string[];
    };
