// The documents made from a table: the text for --help and the tables for a README.
import { replaceSection } from '../generated-section.ts';
import { type Setting, type SettingsTable, toRows } from './setting.ts';

const widthOfHelp = 96;

/** Plain text, one block per setting under the headings of the table. */
export function toHelp(table: SettingsTable): string {
  const sections = groupByTitle(table).map(
    ([title, settings]) => `${title}\n\n${settings.map(helpOf).join('\n')}`,
  );
  return sections.join('\n');
}

function helpOf(setting: Setting<unknown>): string {
  const facts = `${meaningOf(setting)} [${defaultOf(setting)}]`;
  return `  ${setting.names.join(', ')}\n${wrap(facts, '      ')}\n`;
}

function wrap(text: string, indent: string): string {
  const lines: string[] = [];
  let line = indent;
  for (const word of text.split(' ')) {
    if (line.length > indent.length && line.length + word.length >= widthOfHelp) {
      lines.push(line.trimEnd());
      line = indent;
    }
    line += `${word} `;
  }
  return [...lines, line.trimEnd()].join('\n');
}

/** A test that shows what settings do. */
export interface SettingProof {
  /** From the root of the project. */
  readonly file: string;
  /** What the file calls the test, or a part of that. */
  readonly title: string;
  /** The first names of the settings. */
  readonly names: readonly string[];
}

/**
 * Markdown: a heading and a table of names, default and meaning for each section; and of proofs,
 * where they are given.
 */
export function toMarkdown(table: SettingsTable, proofs?: readonly SettingProof[]): string {
  const columns = ['Name', 'Default', 'Meaning', ...(proofs ? ['Proven by'] : [])];
  return groupByTitle(table)
    .map(([title, settings]) =>
      [
        `### ${title}`,
        '',
        toLine(columns),
        `|${'---|'.repeat(columns.length)}`,
        ...settings.map((setting) =>
          toLine([...toCells(setting), ...(proofs ? [showProof(setting, proofs)] : [])]),
        ),
      ].join('\n'),
    )
    .join('\n\n');
}

function toLine(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`;
}

function toCells(setting: Setting<unknown>): string[] {
  const names = setting.names.map((name) => `\`${name}\``).join(', ');
  return [names, defaultOf(setting), escapeCell(meaningOf(setting))];
}

function showProof({ names }: Setting<unknown>, proofs: readonly SettingProof[]): string {
  const proof = proofs.find((one) => one.names.includes(names[0]));
  return proof === undefined ? 'nothing' : `\`${proof.file}\` ${escapeCell(proof.title)}`;
}

function escapeCell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '&lt;');
}

function groupByTitle(table: SettingsTable): [string, Setting<unknown>[]][] {
  const groups = Map.groupBy(toRows(table), (row) => row.title);
  return [...groups].map(([title, rows]) => [title, rows.map((row) => row.setting)]);
}

function defaultOf(setting: Setting<unknown>): string {
  if (setting.defaultText !== undefined) return setting.defaultText;
  const text = setting.format(setting.default);
  return text === '' ? 'unset' : text;
}

function meaningOf({ kind, doc, accepts, notYet, deprecated }: Setting<unknown>): string {
  return [
    kind === 'choice' ? `${doc}: ${accepts}` : doc,
    ...(notYet === undefined ? [] : [`Not in effect yet: ${notYet}`]),
    ...(deprecated === undefined ? [] : [`Deprecated: ${deprecated}`]),
  ].join('. ');
}

/**
 * The README with the tables between its two settings marks. Undefined when a mark is missing or
 * they are in the wrong order.
 */
export function replaceSettings(
  readme: string,
  table: SettingsTable,
  proofs?: readonly SettingProof[],
): string | undefined {
  return replaceSection(readme, 'settings', toMarkdown(table, proofs));
}
