// Finds placeholders that a template engine should have replaced: `{{ .Values.limit }}`, `{% if x %}`, `${LIMIT}`.

const placeholder = /\{\{[^{}\n]{1,80}\}\}|\{%[^{}\n]{1,80}%\}|\$\{\w{1,80}\}/;
/** The beginning of a line up to a placeholder outside of quotes and comments. */
const beforePlaceholder = /^[^'"#\n\r\u2028\u2029]*?(?=\{\{|\{%|\$\{)/m;

export const renderHint = 'render the template first, and give what it makes';

/** The first placeholder in a text. */
export function findPlaceholder(text: string): string | undefined {
  return placeholder.exec(text)?.[0];
}

/** The offset of the first placeholder outside of quotes, where it is hardly ever valid YAML. */
export function findBarePlaceholder(yaml: string): number | undefined {
  const before = beforePlaceholder.exec(yaml);
  return before === null ? undefined : before.index + before[0].length;
}
