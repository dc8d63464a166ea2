// Documents generated from a table of settings: the text for --help and the tables of settings.md.
import { type Setting, type SettingsTable, toRows } from '../../shared/settings/setting.ts';

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

/** Markdown: for each section a heading and a table of names, defaults and meanings. */
export function toMarkdown(table: SettingsTable): string {
  /** The first setting with each text; later ones refer to it. */
  const meanings = new Map<string, string>();
  const columns = ['Name', 'Default', 'Meaning'];
  const sections = groupByTitle(table).map(([title, settings]) =>
    [
      `## ${title}`,
      '',
      toLine(columns),
      `|${'---|'.repeat(columns.length)}`,
      ...settings.map((setting) => toLine(toCells(setting, meanings))),
    ].join('\n'),
  );
  return sections.join('\n\n');
}

function toLine(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`;
}

function toCells(setting: Setting<unknown>, meanings: Map<string, string>): string[] {
  const names = setting.names.map((name) => `\`${name}\``);
  const meaning = meaningOf(setting);
  const first = meanings.get(meaning);
  if (first === undefined) meanings.set(meaning, names[0] ?? '');
  const shown = first === undefined ? escapeCell(meaning) : `Like ${first}`;
  return [names.join(', '), defaultOf(setting), shown];
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

function meaningOf({ kind, doc, accepts, deprecated }: Setting<unknown>): string {
  return [
    kind === 'choice' ? `${doc}: ${accepts}` : doc,
    ...(deprecated === undefined ? [] : [`Deprecated: ${deprecated}`]),
  ].join('. ');
}
