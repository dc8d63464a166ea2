// Sections of documents generated from the code, between two marks: `<!-- NAME:begin -->` and `<!--
// NAME:end -->`. `npm run docs` writes them, tests compare them.

export interface GeneratedSection {
  readonly document: URL;
  /** The name in the marks. */
  readonly mark: string;
  /** Markdown. */
  readonly text: string;
}

/** The document with `text` between the marks; undefined when one is missing, or in the wrong order. */
export function replaceSection(document: string, mark: string, text: string): string | undefined {
  const begin = `<!-- ${mark}:begin -->`;
  const end = `<!-- ${mark}:end -->`;
  const from = document.indexOf(begin);
  const to = document.indexOf(end);
  if (from < 0 || to < from) return undefined;
  return `${document.slice(0, from + begin.length)}\n\n${text}\n\n${document.slice(to)}`;
}

/** A Markdown table. */
export function toTable(columns: readonly string[], rows: readonly (readonly string[])[]): string {
  const toLine = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const lines = rows.map((row) => toLine(row.map(escapeCell)));
  return [toLine(columns), `|${'---|'.repeat(columns.length)}`, ...lines].join('\n');
}

function escapeCell(text: string): string {
  return text
    .split(/(`[^`]*`)/)
    .map((part) => (part.startsWith('`') ? part : part.replaceAll('<', '&lt;')))
    .join('')
    .replaceAll('|', '\\|');
}
