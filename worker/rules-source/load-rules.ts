// From the texts of all rules files to the rules: the one place where files meet the model.
import { parseRuleDocument } from '../../shared/rules/document.ts';
import type { Problem } from '../../shared/rules/problem.ts';
import type { RuleSetOptions } from '../../shared/rules/rule-set.ts';
import { buildRuleSet } from '../../shared/rules/rule-set.ts';
import type { LoadRules } from './file-source.ts';

/** A file with an error makes the whole load fail: half of the rules is worse than the old ones. */
export function createLoadRules(options: RuleSetOptions): LoadRules {
  return (files) => {
    const parsed = files.map(({ path, text }) => parseRuleDocument(text, path));
    const documents = parsed.flatMap(({ document }) => document ?? []);
    const ofFiles: Problem[] = parsed.flatMap(({ problems }) => problems);
    const built = buildRuleSet(documents, options);
    if (!built.ok) return { ok: false, problems: [...ofFiles, ...built.problems] };
    if (documents.length < files.length) {
      return { ok: false, problems: [...ofFiles, ...built.warnings] };
    }
    const { ruleSet } = built;
    return { ok: true, ruleSet, documents, warnings: [...ofFiles, ...built.warnings] };
  };
}
