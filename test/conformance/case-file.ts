// The recorded cases as data: their format, how they are read, and which of them share a worker. case-run.ts runs them.
import { readdirSync, readFileSync } from 'node:fs';
import { notYet } from './not-yet.ts';

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** One action or observation: exactly one key selects the kind, the others refine it. */
export interface Step {
  readonly expect?: Json;
  readonly repeat?: number;
  readonly eventually?: boolean;
  /** Seconds during which something must not happen. */
  readonly settle?: number;
  readonly at_least?: boolean;
  readonly subset?: boolean;

  readonly json?: Json;
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly show_headers?: readonly string[];

  readonly grpc?: Json;
  readonly grpc_health?: string;
  readonly tls?: string;
  readonly may_fail?: boolean;
  readonly show_text?: boolean;

  readonly get?: string;
  readonly port?: 'http' | 'debug' | 'metrics';
  readonly show?: 'text' | 'paths';
  readonly of?: readonly string[];

  readonly rlconfig?: readonly string[];
  readonly stats?: readonly string[];
  readonly sum?: boolean;
  readonly only?: readonly string[];
  readonly wire?: string;
  readonly names_only?: boolean;
  /** Samples of the pull endpoint that match; `path` is the endpoint's path. */
  readonly metrics?: string;
  /** Whether they exist, whatever their values. */
  readonly seen?: boolean;
  readonly redis?: string;
  readonly server?: string;
  readonly memcached?: readonly string[];
  readonly output?: readonly string[];
  readonly log_format?: boolean;
  readonly terminate?: boolean;

  readonly write?: FileTexts;
  readonly in_place?: boolean;
  readonly remove?: readonly string[];
  readonly chmod?: readonly string[];
  readonly swap?: FileTexts;
  readonly sleep?: number;
  readonly redis_do?: readonly (readonly (string | number)[])[];
  readonly backend?: 'stop' | 'start';
}

/** A text or its lines, by file name. */
export type FileTexts = Readonly<Record<string, string | readonly string[]>>;

export interface Case {
  readonly id: string;
  readonly about: string;
  /** `differs`: we decided otherwise than recorded, so the case is not run. `ours`: a feature that the reference
   * service does not have. */
  readonly class?: 'core' | 'quirk' | 'differs' | 'ours';
  readonly config: FileTexts;
  readonly env?: Readonly<Record<string, string | null>>;
  readonly steps: readonly Step[];
  readonly alone?: boolean;
  readonly own_redis?: boolean;
  readonly redis_args?: readonly string[];
  readonly start?: 'fails';
  /** The time limit in seconds for a failing start to exit; default 8. */
  readonly within?: number;
  readonly retries?: number;
  /** How many seconds of a minute must be left when the case starts; default 5. */
  readonly minute_room?: number;
}

interface CaseFile {
  readonly topic: string;
  readonly cases: readonly Case[];
}

const folder = new URL('cases/', import.meta.url);

export function readCaseFiles(): CaseFile[] {
  return readdirSync(folder)
    .sort()
    .map((name) => JSON.parse(readFileSync(new URL(name, folder), 'utf8')) as CaseFile);
}

/** The cases to run, in groups that share one worker because their settings are equal. Omits the cases in not-yet.ts,
 * and those for which another behaviour was decided (`differs`). */
export function readCaseGroups(): Case[][] {
  const groups = new Map<string, Case[]>();
  for (const { topic, cases } of readCaseFiles()) {
    for (const one of cases) {
      if (one.class === 'differs' || notYet.some((gap) => [topic, one.id].includes(gap.name)))
        continue;
      const alone = one.alone === true || one.own_redis === true || one.start === 'fails';
      const settings = Object.entries(one.env ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
      const key = JSON.stringify([settings, alone ? one.id : '']);
      groups.set(key, [...(groups.get(key) ?? []), one]);
    }
  }
  // Cases that rewrite configuration run last, so that they do not affect the others.
  return [...groups.values()].map((group) => [
    ...group.filter((one) => !changesFiles(one)),
    ...group.filter(changesFiles),
  ]);
}

export function changesFiles(one: Case): boolean {
  return one.steps.some(
    (step) => (step.write ?? step.remove ?? step.chmod ?? step.swap) !== undefined,
  );
}

export function usesMemcached(one: Case): boolean {
  return one.env?.['BACKEND_TYPE'] === 'memcache';
}

export function fileText(content: string | readonly string[]): string {
  return typeof content === 'string' ? content : `${content.join('\n')}\n`;
}

/** The domains that the case's own files define. */
export function domainsOf(one: Case): string[] {
  const texts = Object.values(one.config).map(fileText).join('\n');
  const found = [...texts.matchAll(/^domain:\s*["']?([^\s"']+)/gm)].map((match) => match[1] ?? '');
  return [...new Set(found)].sort();
}
