// An error as a developer sees it: its text and the source line, in the log and in the answer. For `serve --watch`
// alone, and in answers to this machine only.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { isLoopback } from '../../loopback.ts';
import { type ErrorReport, toErrorText } from '../answer/error-report.ts';
import type { Dispatch } from '../request/request.ts';
import { toHeaders } from '../request/request.ts';

export interface Development {
  readonly reportError: (report: ErrorReport) => void;
  /** The same answers, but for those of errors of ours. */
  show(dispatch: Dispatch): Dispatch;
}

const linesAround = 3;
const ownFolder = new URL('..', import.meta.url).href;

export function createDevelopment(write: (text: string) => void): Development {
  /** Texts of errors, by the id of a request that is not answered yet. */
  const texts = new Map<string, string>();
  return {
    reportError({ request, status, error }) {
      const text = [toErrorText(error), ...readSource(error)].join('\n');
      texts.set(request.id, text);
      write(`${status} ${request.method} ${request.path} (request ${request.id})\n${text}\n`);
    },
    show: (dispatch) => async (request) => {
      const answer = await dispatch(request);
      const id = toHeaders(answer.headers).get('x-request-id') ?? '';
      const text = texts.get(id);
      texts.delete(id);
      if (text === undefined || answer.status < 500) return answer;
      if (!isLoopback(request.remoteAddress ?? '')) return answer;
      const wantsPage = (request.headers.get('accept') ?? '').includes('text/html');
      const type = wantsPage ? 'text/html' : 'text/plain';
      const title = `${answer.status} ${request.method}`;
      const body = wantsPage
        ? `<!doctype html><title>${title}</title><h1>${title}</h1><pre>${toHtml(text)}</pre>\n`
        : `${text}\n`;
      const headers = ['content-type', `${type};charset=UTF-8`, 'x-request-id', id];
      return { status: answer.status, headers: [...headers, 'cache-control', 'no-store'], body };
    },
  };
}

/** The lines around the place in the application where it was thrown, under that place; none where it is unknown. */
function readSource(error: unknown): readonly string[] {
  const place = error instanceof Error ? findPlace(error.stack ?? '') : undefined;
  if (place === undefined) return [];
  try {
    const lines = readFileSync(place.file, 'utf8').split('\n');
    const first = Math.max(0, place.line - 1 - linesAround);
    const shown = lines.slice(first, place.line + linesAround).map((text, at) => {
      const number = first + at + 1;
      return `${number === place.line ? '>' : ' '} ${String(number).padStart(5)} | ${text}`;
    });
    return ['', `${place.file}:${place.line}`, ...shown];
  } catch {
    // The file is not there any more; the stack is.
    return [];
  }
}

/** The innermost call outside of the router, of packages and of Node. */
function findPlace(stack: string): { readonly file: string; readonly line: number } | undefined {
  for (const frame of stack.split('\n')) {
    const at = frame.indexOf('file://');
    if (at < 0 || frame.includes('/node_modules/') || frame.includes(ownFolder)) continue;
    const [url, line] = frame
      .slice(at)
      .replace(')', '')
      .split(/:(?=\d)/);
    if (url !== undefined && line !== undefined) {
      return { file: fileURLToPath(url), line: Number(line) };
    }
  }
  return undefined;
}

function toHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
