// Exports a table as a file: CSV for spreadsheets, JSON for programs.

/** Null if unknown. */
export type Cell = string | number | null;

/** RFC 4180. A text that a spreadsheet would interpret as a formula gets an apostrophe in front. */
export function toCsv(columns: readonly string[], rows: readonly (readonly Cell[])[]): string {
  return [columns, ...rows].map((row) => `${row.map(toField).join(',')}\r\n`).join('');
}

function toField(cell: Cell): string {
  if (cell === null) return '';
  if (typeof cell === 'number') return String(cell);
  const text = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** An array of objects whose keys are the columns' names. */
export function toJsonRows(columns: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const objects = rows.map((row) =>
    Object.fromEntries(columns.map((column, index) => [column, row[index] ?? null])),
  );
  return `${JSON.stringify(objects, undefined, 2)}\n`;
}
