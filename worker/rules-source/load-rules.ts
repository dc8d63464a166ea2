// Makes rules from the texts of all rules files.
import { type Clock, systemClock } from '../../shared/clock.ts';
import { runInSlices } from '../../shared/in-slices.ts';
import { type ParsedDocument, parseRuleDocument } from '../../shared/rules/document/document.ts';
import { applyAllowancesInSteps } from '../../shared/rules/problem/allowance.ts';
import type { RuleDocument } from '../../shared/rules/rule-document.ts';
import type { RuleSetBuilder } from '../../shared/rules/rule-set.ts';
import type { RulesFile } from '../../shared/rules-file.ts';
import type { LoadRules } from './file-source.ts';
import { isLargeText, type ParsingThread } from './parsing-thread.ts';

/**
 * An error in one file fails the whole load: half of the rules are worse than the old ones. A file that is the same
 * object as in an earlier load is not parsed again. Decisions continue meanwhile: large files are parsed in
 * `parsingThread`, if there is one.
 */
export function createLoadRules(
  builder: RuleSetBuilder,
  parsingThread?: ParsingThread,
  clock: Clock = systemClock,
): LoadRules {
  const known = new WeakMap<RulesFile, ParsedDocument>();
  /** The last valid document of each file, by its path; undefined before the first load. */
  let latest: ReadonlyMap<string, RuleDocument> | undefined;

  async function parseLarge(files: readonly RulesFile[], thread: ParsingThread): Promise<void> {
    for (const file of files) {
      if (known.has(file) || !isLargeText(file.text)) continue;
      known.set(file, await thread.parse(file.text, file.path, latest?.get(file.path)));
    }
  }

  function parse(file: RulesFile): ParsedDocument {
    let parsed = known.get(file);
    if (parsed === undefined) {
      parsed = parseRuleDocument(file.text, file.path);
      known.set(file, parsed);
    }
    return parsed;
  }

  function* load(files: readonly RulesFile[]): Generator<void, Awaited<ReturnType<LoadRules>>> {
    const parsed: ParsedDocument[] = [];
    for (const file of files) {
      parsed.push(parse(file));
      yield;
    }
    const documents = parsed.flatMap(({ document }) => document ?? []);
    const old = files.flatMap(({ path }) => latest?.get(path) ?? []);
    latest = new Map([...old, ...documents].map((document) => [document.file, document]));
    const ofFiles = parsed.flatMap(({ problems }) => problems);
    const atMs = clock.wallMs();
    const built = yield* builder.build(documents, atMs);
    const all = [...ofFiles, ...(built.ok ? built.warnings : built.problems)];
    const paths = new Set(all.map(({ file }) => file));
    const concerned = files.filter(({ path }) => paths.has(path));
    const { problems } = yield* applyAllowancesInSteps(all, concerned);
    if (!built.ok || documents.length < files.length) return { ok: false, problems };
    return { ok: true, ruleSet: built.ruleSet, documents, atMs, warnings: problems };
  }

  return async (files) => {
    // Before the first load there are no decisions.
    if (parsingThread !== undefined && latest !== undefined) await parseLarge(files, parsingThread);
    return runInSlices(load(files));
  };
}
