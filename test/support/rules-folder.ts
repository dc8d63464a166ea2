// A file source over a temporary folder, and the loads it delivers, for tests of the file source.

import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { systemClock } from '../../shared/clock.ts';
import { formatProblems } from '../../shared/rules/problem/problem-text.ts';
import { createRuleSetBuilder } from '../../shared/rules/rule-set.ts';
import type { MetricsRegistry } from '../../worker/metrics/registry.ts';
import { createRegistry } from '../../worker/metrics/registry.ts';
import type { FileSourceDeps, FileSourceOptions } from '../../worker/rules-source/file-source.ts';
import { createFileSource } from '../../worker/rules-source/file-source.ts';
import { createLoadRules } from '../../worker/rules-source/load-rules.ts';
import type { LoadResult, RulesSource } from '../../worker/rules-source/source.ts';
import type { RecordedLog } from './recorded-log.ts';
import { createRecordedLog } from './recorded-log.ts';
import { createTemporaryFolder } from './temporary-folder.ts';
import { waitUntil } from './wait-until.ts';

export interface RulesFolder {
  /** An empty temporary folder, removed after the test. */
  readonly path: string;
  /** Writes a file, replacing one in place; its folders are made as well. */
  write(path: string, text: string): void;
  /** Replaces a file by renaming another one over it. */
  replace(path: string, text: string): void;
  /** Makes `link` point to `target`, renaming over the link that is there. */
  relink(link: string, target: string): void;
}

export function createRulesFolder(t: Pick<ExecutionContext, 'teardown'>): RulesFolder {
  const path = createTemporaryFolder(t);
  const write = (name: string, text: string) => {
    mkdirSync(dirname(join(path, name)), { recursive: true });
    writeFileSync(join(path, name), text);
  };
  return {
    path,
    write,
    replace(name, text) {
      write('staged', text);
      renameSync(join(path, 'staged'), join(path, name));
    },
    relink(link, target) {
      symlinkSync(target, join(path, 'staged'));
      renameSync(join(path, 'staged'), join(path, link));
    },
  };
}

/** A document with one limit, told apart by its number of requests. By the year, so that no window ends in the
 * middle of a test. */
export function ruleText(domain: string, requestsPerUnit: number): string {
  return `domain: ${domain}
descriptors:
  - key: k
    rate_limit: { unit: year, requests_per_unit: ${requestsPerUnit} }
`;
}

export interface StartedSource {
  readonly source: RulesSource;
  /** All loads in order. */
  readonly loads: readonly LoadResult[];
  readonly metrics: MetricsRegistry;
  readonly log: RecordedLog;
  /** The limits of the last good load, as `domain=number`, sorted; 'none' before the first. */
  limits(): string;
  /** Waits for `limits()` to be this. */
  becomes(limits: string): Promise<void>;
}

/** Settings as given, else those of a folder `config` that is watched in place. */
export async function startFileSource(
  t: ExecutionContext,
  root: string,
  options: Partial<FileSourceOptions> = {},
  deps: Partial<FileSourceDeps> = {},
): Promise<StartedSource> {
  const log = createRecordedLog();
  const metrics = createRegistry({ runtimeNamesMax: 0, log });
  const loads: LoadResult[] = [];
  const source = createFileSource({
    options: {
      root,
      subdirectory: '',
      appDirectory: 'config',
      ignoreDotFiles: false,
      watchRoot: false,
      ...options,
    },
    load: createLoadRules(createRuleSetBuilder({ mergeDomains: false, sanitizeMetricDots: false })),
    metrics,
    log,
    clock: systemClock,
    ...deps,
  });
  t.teardown(() => source.close());
  const limits = () => {
    const good = loads.findLast((result) => result.ok);
    return good?.ok ? toLimits([...good.ruleSet.describe()]) : 'none';
  };
  await source.start((result) => loads.push(result));
  return {
    source,
    loads,
    metrics,
    log,
    limits,
    async becomes(wanted) {
      await waitUntil(() => limits() === wanted, 30_000);
      t.is(limits(), wanted);
    },
  };
}

/** All problems and warnings of a load as people read them, the folder's path left out. */
export function problemTexts(result: LoadResult | undefined, root: string): string {
  if (result === undefined) return '(no load)';
  const problems = result.ok ? result.warnings : result.problems;
  return formatProblems(problems).replaceAll(root, '');
}

function toLimits(lines: readonly string[]): string {
  return lines
    .map((line) => line.replace(/^(.*)\.k: .*requests_per_unit=(\d+),.*$/, '$1=$2'))
    .sort()
    .join(' ');
}
