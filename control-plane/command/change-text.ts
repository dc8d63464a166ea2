// Formats the changes for requests as text, for `diff` and `push`.

import { toCountText } from '../../shared/count-text.ts';
import { escapeText } from '../../shared/rules/problem/escaped-text.ts';
import type { RuleChangeJson } from '../server/admin/rule-change-json.ts';

/** Grouped by domain and by the affected requests. */
export function formatChanges(changes: readonly RuleChangeJson[]): string {
  if (changes.length === 0) return 'nothing changes for requests\n';
  const lines: string[] = [];
  let domain: string | undefined;
  let requests: string | undefined;
  for (const change of changes) {
    if (change.domain !== domain) {
      ({ domain } = change);
      requests = undefined;
      lines.push(`domain ${domain}`);
    }
    const shown = formatRequests(change);
    if (shown === '') {
      const isDomain = change.kind.startsWith('domain_');
      lines.push(`  ${words(change)}${isDomain ? '' : `: ${change.text}`}`);
      continue;
    }
    if (shown !== requests) lines.push(`  ${shown}${formatPositions(change)}`);
    requests = shown;
    lines.push(`    ${words(change)}: ${change.text}`);
  }
  lines.push('', toCountText(changes.length, 'change'));
  return lines.map((line) => `${escapeText(line)}\n`).join('');
}

function words({ kind }: RuleChangeJson): string {
  return kind.replaceAll('_', ' ');
}

function formatRequests({ requests }: RuleChangeJson): string {
  return requests.map(({ key, value }) => `${key}=${value === '' ? '(any)' : value}`).join(', ');
}

function formatPositions({ ruleBefore, ruleAfter }: RuleChangeJson): string {
  if (ruleBefore === ruleAfter) return `  (${ruleBefore})`;
  return `  (${ruleBefore ?? 'no rule'} -> ${ruleAfter ?? 'no rule'})`;
}
