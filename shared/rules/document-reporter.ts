// How the readers of one document tell its problems: by offset, turned into lines here.
import type { Problem } from './problem.ts';
import { createProblemList } from './problem-list.ts';
import type { ProblemRule } from './problem-rule.ts';
import { createSourceText, type Position } from './source-text.ts';

export interface DocumentReporter {
  /** `offset` is undefined for what concerns the document as a whole. */
  error(
    rule: ProblemRule,
    offset: number | undefined,
    path: string,
    message: string,
    hint?: string,
  ): void;
  warning: DocumentReporter['error'];
  /** Undefined when the source has no lines. */
  position(offset: number): Position | undefined;
  /** `line:column`, or the path in a source without lines, to name another place in a hint. */
  place(offset: number): string;
  readonly hasErrors: boolean;
  toProblems(): Problem[];
}

export function createDocumentReporter(text: string, file: string): DocumentReporter {
  const source = createSourceText(text);
  const list = createProblemList(file);

  function add(
    severity: Problem['severity'],
    rule: ProblemRule,
    offset: number | undefined,
    path: string,
    message: string,
    hint?: string,
  ): void {
    const position = offset === undefined ? undefined : source.position(offset);
    list.add({
      severity,
      rule,
      file,
      line: position?.line,
      column: position?.column,
      path,
      message,
      hint,
      sourceLine: position?.sourceLine,
    });
  }

  return {
    error: (...problem) => add('error', ...problem),
    warning: (...problem) => add('warning', ...problem),
    position: (offset) => source.position(offset),
    place(offset) {
      const { line, column } = source.position(offset);
      return `${line}:${column}`;
    },
    get hasErrors() {
      return list.hasErrors;
    },
    toProblems: () => list.toProblems(),
  };
}
