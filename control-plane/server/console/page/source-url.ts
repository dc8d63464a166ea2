// The address at which a file of the rules can be read, by the template of the setting --source-url. Pure.

export interface SourcePlace {
  readonly file: string;
  readonly line: number | null;
  readonly revision: string;
}

/** Without a line, the template's text after `#` is left out. */
export function toSourceUrl(template: string, { file, line, revision }: SourcePlace): string {
  const known = line === null ? (template.split('#', 1)[0] ?? '') : template;
  const texts: Readonly<Record<string, string>> = {
    file: file.split('/').map(encodeURIComponent).join('/'),
    line: String(line ?? 1),
    revision: encodeURIComponent(revision),
  };
  return known.replace(/\{(file|line|revision)\}/g, (_, name: string) => texts[name] ?? '');
}
