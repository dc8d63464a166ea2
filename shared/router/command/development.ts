// An error as a developer sees it: its text and the source line, in the log and in the answer. Used only for
// `serve --watch`, and in answers to this machine.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { isLoopback } from '../../host-port.ts';
import { toErrorText } from '../answer/error-report.ts';
import type { AppOptions } from '../app.ts';

const linesAround = 3;
const ownFolder = new URL('..', import.meta.url).href;

export function createDevelopment(
  write: (text: string) => void,
): Required<Pick<AppOptions, 'around' | 'reportError'>> {
  return {
    reportError({ request: { id, method, path }, status, error }) {
      write(`${status} ${method} ${path} (request ${id})\n${describe(error)}\n`);
    },
    async around(next, { remoteAddress = '' }) {
      const answer = await next();
      const { status, error } = answer;
      if (error === undefined || status < 500 || !isLoopback(remoteAddress)) return answer;
      answer.headers.set('content-type', 'text/plain;charset=UTF-8');
      answer.body = `${describe(error)}\n`;
      return answer;
    },
  };
}

/** The causes of the error, and the source lines around the position in the application that threw it, if known. */
function describe(error: unknown): string {
  const text = toErrorText(error);
  const position = error instanceof Error ? findPosition(error.stack ?? '') : undefined;
  if (position === undefined) return text;
  try {
    const lines = readFileSync(position.file, 'utf8').split('\n');
    const first = Math.max(0, position.line - 1 - linesAround);
    const shown = lines.slice(first, position.line + linesAround).map((line, at) => {
      const number = first + at + 1;
      return `${number === position.line ? '>' : ' '} ${String(number).padStart(5)} | ${line}`;
    });
    return [text, '', `${position.file}:${position.line}`, ...shown].join('\n');
  } catch {
    // The file no longer exists; the stack remains.
    return text;
  }
}

/** The innermost call outside the router, packages and Node. */
function findPosition(stack: string): { readonly file: string; readonly line: number } | undefined {
  for (const frame of stack.split('\n')) {
    const [, url, line] = /(file:\/\/.*?):(\d+)/.exec(frame) ?? [];
    if (url === undefined || url.includes('/node_modules/') || url.startsWith(ownFolder)) continue;
    return { file: fileURLToPath(url), line: Number(line) };
  }
  return undefined;
}
