// A file source on a temporary folder, and the loads that it delivers, for tests of the file source.

import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { systemClock } from '../../shared/clock.ts';
import { formatProblems } from '../../shared/rules/problem/problem-text.ts';
import { createRuleSetBuilder } from '../../shared/rules/rule-set.ts';
import { createRegistry } from '../../worker/metrics/registry.ts';
import type { FileSourceDeps, FileSourceOptions } from '../../worker/rules-source/file-source.ts';
import { FileSource } from '../../worker/rules-source/file-source.ts';
import { createLoadRules } from '../../worker/rules-source/load-rules.ts';
import type { LoadResult } from '../../worker/rules-source/source.ts';
import { createRecordedLog } from './recorded-log.ts';
import { createTemporaryFolder } from './temporary-folder.ts';
import { waitUntil } from './wait-until.ts';

export type RulesFolder = ReturnType<typeof createRulesFolder>;

/** With these files, by name. */
export function createRulesFolder(
  t: Pick<ExecutionContext, 'teardown'>,
  files: Readonly<Record<string, string>> = {},
) {
  const path = createTemporaryFolder(t);
  const write = (name: string, text: string) => {
    mkdirSync(dirname(join(path, name)), { recursive: true });
    writeFileSync(join(path, name), text);
  };
  for (const [name, text] of Object.entries(files)) write(name, text);
  return {
    /** An empty temporary folder, removed after the test. */
    path,
    /** Writes a file, replacing one in place; creates its folders as well. */
    write,
    /** Replaces a file by renaming another one over it. */
    replace(name: string, text: string) {
      write('staged', text);
      renameSync(join(path, 'staged'), join(path, name));
    },
    /** Makes `link` point to `target`, by a rename over the existing link. */
    relink(link: string, target: string) {
      symlinkSync(target, join(path, 'staged'));
      renameSync(join(path, 'staged'), join(path, link));
    },
  };
}

/** A document with one limit, identified by its number of requests. Per year, so that no window ends during a test. */
export function ruleText(domain: string, requestsPerUnit: number): string {
  return `domain: ${domain}
descriptors:
  - key: k
    rate_limit: { unit: year, requests_per_unit: ${requestsPerUnit} }
`;
}

export type StartedSource = Awaited<ReturnType<typeof startFileSource>>;

/** With the given settings, otherwise those of a folder `config` that is watched in place. */
export async function startFileSource(
  t: ExecutionContext,
  root: string,
  options: Partial<FileSourceOptions> = {},
  deps: Partial<FileSourceDeps> = {},
) {
  const log = createRecordedLog();
  const metrics = createRegistry({ runtimeNamesMax: 0, log });
  const loads: LoadResult[] = [];
  const source = new FileSource({
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
    /** All loads in order. */
    loads,
    metrics,
    log,
    /** The limits of the last good load, as `domain=number`, sorted; 'none' before the first. */
    limits,
    /** Waits until `limits()` has this value. */
    async becomes(wanted: string) {
      await waitUntil(() => limits() === wanted, 30_000);
      t.is(limits(), wanted);
    },
  };
}

/** All problems and warnings of a load in their printed form, without the folder's path. */
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
