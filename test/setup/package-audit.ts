// Asks the registry which of the packages that the programs run with have known vulnerabilities. What
// is made of the answer is left to run-tests.ts.
import { execFile } from 'node:child_process';
import { basename } from 'node:path';

export type PackageAudit =
  /** `noted` has what is below the level that matters. */
  | { readonly kind: 'sound'; readonly noted: readonly string[] }
  | { readonly kind: 'vulnerable'; readonly found: readonly string[] }
  /** Nobody knows: no network, or a registry that keeps no list of vulnerabilities. */
  | { readonly kind: 'unanswered'; readonly reason: string };

/** npm may ask for more than one document, and each may be slow. */
const timeoutMs = 60_000;
const maxOutputBytes = 64 * 1024 * 1024;
const graveLevels = ['high', 'critical'];

/** `folder` has the lock file; `flags` are npm's. */
export function auditPackages(
  folder: string,
  flags: readonly string[] = [],
): Promise<PackageAudit> {
  const { npm_execpath: starter } = process.env;
  const isNpm = starter !== undefined && basename(starter) === 'npm-cli.js';
  const [command, first] = isNpm ? [process.execPath, [starter]] : ['npm', []];
  const args = ['audit', '--omit=dev', '--package-lock-only', '--json', '--fetch-retries=1'];
  const options = { cwd: folder, timeout: timeoutMs, maxBuffer: maxOutputBytes };
  return new Promise((resolve) => {
    // The exit code is 1 both for what is found and for what cannot be asked: the text tells them apart.
    execFile(command, [...first, ...args, ...flags], options, (error, stdout) => {
      resolve(readAudit(stdout, error?.message ?? 'npm said nothing'));
    });
  });
}

interface Vulnerability {
  readonly name: string;
  readonly severity: string;
  readonly range: string;
  /** Advisories, or the names of the vulnerable packages below this one. */
  readonly via: readonly (string | { readonly title: string; readonly url: string })[];
}

function readAudit(stdout: string, failure: string): PackageAudit {
  let answer: { vulnerabilities?: Record<string, Vulnerability>; message?: string };
  try {
    answer = JSON.parse(stdout);
  } catch {
    return { kind: 'unanswered', reason: failure };
  }
  if (answer.vulnerabilities === undefined) {
    return { kind: 'unanswered', reason: answer.message ?? failure };
  }
  const all = Object.values(answer.vulnerabilities);
  const found = all.filter(({ severity }) => graveLevels.includes(severity)).map(describe);
  if (found.length > 0) return { kind: 'vulnerable', found };
  return { kind: 'sound', noted: all.map(describe) };
}

function describe({ name, severity, range, via }: Vulnerability): string {
  const reasons = via.map((each) =>
    typeof each === 'string' ? each : `${each.title} ${each.url}`,
  );
  return `${name} ${range} (${severity}): ${reasons.join('; ')}`;
}
