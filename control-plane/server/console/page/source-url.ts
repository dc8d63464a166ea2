// Fills the template of the setting --source-url with the position of a rule. Pure.

export interface SourcePosition {
  readonly file: string;
  readonly line: number | null;
  readonly revision: string;
}

/** Without a line, the part of the template from `#` on is omitted. */
export function toSourceUrl(template: string, { file, line, revision }: SourcePosition): string {
  const known = line === null ? (template.split('#', 1)[0] ?? '') : template;
  const texts: Readonly<Record<string, string>> = {
    file: file.split('/').map(encodeURIComponent).join('/'),
    line: String(line ?? 1),
    revision: encodeURIComponent(revision),
  };
  return known.replace(/\{(file|line|revision)\}/g, (_, name: string) => texts[name] ?? '');
}
