// Formats text in columns.

/** One line per row, the first one with the headings; the last column is not padded. */
export function toColumns(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  );
  return rows
    .map((row) =>
      row
        .map((text, column) =>
          column === row.length - 1 ? text : text.padEnd(widths[column] ?? 0),
        )
        .join('  '),
    )
    .map((line) => `${line}\n`)
    .join('');
}
