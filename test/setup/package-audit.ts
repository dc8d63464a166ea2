// Asks the registry which of the programs' packages have known vulnerabilities. run-tests.ts interprets the answer.
import { execFile } from 'node:child_process';
import { basename } from 'node:path';

export type PackageAudit =
  /** `noted` lists what is below the relevant level. */
  | { readonly kind: 'sound'; readonly noted: readonly string[] }
  | { readonly kind: 'vulnerable'; readonly found: readonly string[] }
  /** Unknown: no network, or a registry without a list of vulnerabilities. */
  | { readonly kind: 'unanswered'; readonly reason: string };

/** npm may request more than one document, and each may be slow. */
const timeoutMs = 60_000;
const maxOutputBytes = 64 * 1024 * 1024;
const graveLevels = ['high', 'critical'];

/** `folder` contains the lock file; `flags` are npm's. */
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
    // The exit code is 1 both for vulnerabilities and for a failed request: the text distinguishes them.
    execFile(command, [...first, ...args, ...flags], options, (error, stdout) => {
      resolve(readAudit(stdout, error?.message ?? 'npm printed nothing'));
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
  if (answer.vulnerabilities === undefined)
    return { kind: 'unanswered', reason: answer.message ?? failure };
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
