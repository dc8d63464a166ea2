// What the primary and the processes that decide tell each other. Each side trusts the other: both
// are this program. How messages travel is left to fork-process.ts and main.ts.
import type { Environment } from '../../shared/settings/setting.ts';
import type { UnmatchedSample } from '../decision/unmatched-sampler.ts';
import type { ServingAddresses } from '../serving.ts';
import type { StatisticsReport } from './statistics-report.ts';

/** From the primary; `start` comes first. */
export type ToProcess =
  | {
      readonly kind: 'start';
      readonly environment: Environment;
      /** From 1 on. A process that takes the place of another has its number. */
      readonly number: number;
      /** What all processes would say while they start, one says for all. */
      readonly speaksForAll: boolean;
    }
  /** The documents that the primary accepted, by the numbers that it has given them; those that the process
   * has not got yet come along, serialized. */
  | { readonly kind: 'rules'; readonly numbers: readonly number[]; readonly added: Buffer }
  /** What all processes answer when they are asked for the worker's health. */
  | { readonly kind: 'health'; readonly healthy: boolean }
  | {
      readonly kind: 'listen';
      /** Whether one of the processes listens already, or did. */
      readonly hasListened: boolean;
    }
  /** Answered with the same `id`, at the end of the time or of the request. */
  | {
      readonly kind: 'profile';
      readonly id: number;
      readonly of: 'cpu' | 'heap';
      readonly durationMs: number;
    }
  | { readonly kind: 'end-profile'; readonly id: number }
  | { readonly kind: 'stop'; readonly graceMs: number };

/** From a process that decides. */
export type FromProcess =
  /** The counter store has answered. */
  | { readonly kind: 'connected' }
  | { readonly kind: 'listening'; readonly addresses: ServingAddresses }
  /** It cannot start, and ends: for people. */
  | { readonly kind: 'failed'; readonly message: string }
  /** Whether it reaches its store, at each change. */
  | { readonly kind: 'store'; readonly healthy: boolean }
  | { readonly kind: 'profile'; readonly id: number; readonly result: Uint8Array | 'busy' }
  /** Each second, so that silence is a sign; parts of what changed where that is much. */
  | {
      readonly kind: 'report';
      readonly statistics: StatisticsReport;
      /** Taken since the last report. */
      readonly unmatched: readonly UnmatchedSample[];
      /** For the debug port. */
      readonly description: readonly string[];
    };
