// Tables: their columns can be sorted, and their content can be exported as CSV or JSON.
import { html } from 'htm/preact';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { type Cell, toCsv, toJsonRows } from './export.ts';
import { compareNames } from './format.ts';

export interface Column<Item> {
  /** '' for a column with actions. */
  readonly name: string;
  readonly isNumber?: boolean;
  /** The value by which the column is sorted and exported; a column without it can be neither. */
  readonly value?: (item: Item) => Cell;
}

interface TableProps<Item> {
  readonly caption: string;
  readonly columns: readonly Column<Item>[];
  /** In their default order, until a user sorts them. */
  readonly items: readonly Item[];
  /** One or several `tr`; `isSorted`: whether the items are not in their default order. */
  toRow(item: Item, isSorted: boolean): ComponentChildren;
  /** How many rows are shown at first, and how many more at a time. */
  readonly atOnce?: number;
}

interface Sorting {
  readonly column: string;
  readonly isDown: boolean;
}

/** Only the first rows are shown until the user asks for more: thousands would make every update slow. */
export function Table<Item>({ caption, columns, items, toRow, atOnce = 100 }: TableProps<Item>) {
  const [most, setMost] = useState(atOnce);
  const [sorting, setSorting] = useState<Sorting | undefined>(undefined);
  const body = useRef<HTMLTableSectionElement>(null);
  useEffect(() => nameCells(body.current, columns));
  const sorted = sort(items, columns, sorting);
  const left = sorted.length - most;
  const isExported = columns.some(({ value }) => value !== undefined);
  return html`<div class="table" role="region" aria-label=${caption} tabindex="0">
      <table>
        <caption class="unseen">${caption}</caption>
        <thead><tr>${columns.map(
          (column) => html`<${Head} column=${column} sorting=${sorting} onSort=${setSorting} />`,
        )}</tr></thead>
        <tbody ref=${body}>${sorted.slice(0, most).map((item) => toRow(item, sorting !== undefined))}</tbody>
      </table>
    </div>
    <div class="below">
      ${
        left > 0 &&
        html`<button type="button" onClick=${() => setMost(most + atOnce)}>
          Show ${Math.min(left, atOnce)} more of ${left}</button>`
      }
      ${
        isExported &&
        html`<span class="export" role="group" aria-label=${`Export: ${caption}`}>
          <button type="button" class="link" onClick=${() => save(caption, 'csv', columns, sorted)}>CSV</button>
          <button type="button" class="link" onClick=${() => save(caption, 'json', columns, sorted)}>JSON</button>
        </span>`
      }
    </div>`;
}

/** On a phone each row is a card, and each cell names its column. */
function nameCells<Item>(
  body: HTMLTableSectionElement | null,
  columns: readonly Column<Item>[],
): void {
  for (const row of body?.rows ?? []) {
    let index = 0;
    for (const cell of row.cells) {
      const name = cell.colSpan === 1 && index > 0 ? columns[index]?.name : '';
      if (cell.dataset['name'] !== name) cell.dataset['name'] = name;
      index += cell.colSpan;
    }
  }
}

interface HeadProps<Item> {
  readonly column: Column<Item>;
  readonly sorting: Sorting | undefined;
  onSort(sorting: Sorting | undefined): void;
}

function Head<Item>({
  column: { name, isNumber = false, value },
  sorting,
  onSort,
}: HeadProps<Item>) {
  const kind = isNumber ? 'number' : undefined;
  if (name === '') return html`<th scope="col"><span class="unseen">Actions</span></th>`;
  if (value === undefined) return html`<th scope="col" class=${kind}>${name}</th>`;
  const isDown = sorting?.column === name ? sorting.isDown : undefined;
  // The largest number or the first name first; then the reverse; then the default order.
  const next =
    isDown === undefined
      ? { column: name, isDown: isNumber }
      : isDown === isNumber
        ? { column: name, isDown: !isNumber }
        : undefined;
  const direction = isDown === undefined ? undefined : isDown ? 'descending' : 'ascending';
  return html`<th scope="col" class=${kind} aria-sort=${direction}>
    <button type="button" class="sort" onClick=${() => onSort(next)}>${name}<span class="arrow" aria-hidden="true">${isDown === undefined ? '' : isDown ? '↓' : '↑'}</span></button>
  </th>`;
}

function sort<Item>(
  items: readonly Item[],
  columns: readonly Column<Item>[],
  sorting: Sorting | undefined,
): readonly Item[] {
  const value = columns.find(({ name }) => name === sorting?.column)?.value;
  if (sorting === undefined || value === undefined) return items;
  const turn = sorting.isDown ? -1 : 1;
  return items.toSorted((a, b) => {
    const [one, other] = [value(a), value(b)];
    // An unknown value is last in either order.
    if (one === null || other === null) return Number(one === null) - Number(other === null);
    const order =
      typeof one === 'number' && typeof other === 'number'
        ? one - other
        : compareNames(String(one), String(other));
    return order * turn;
  });
}

/** Includes rows that are not shown yet. */
function save<Item>(
  caption: string,
  kind: 'csv' | 'json',
  columns: readonly Column<Item>[],
  items: readonly Item[],
): void {
  const shown = columns.filter(({ value }) => value !== undefined);
  const names = shown.map(({ name }) => name);
  const rows = items.map((item) => shown.map(({ value }) => value?.(item) ?? null));
  const [text, type] =
    kind === 'csv'
      ? [toCsv(names, rows), 'text/csv;charset=utf-8']
      : [toJsonRows(names, rows), 'application/json'];
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = `${caption.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}.${kind}`;
  link.click();
  URL.revokeObjectURL(link.href);
}
