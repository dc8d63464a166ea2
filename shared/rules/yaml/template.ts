// Finds what a template engine should have filled in: `{{ .Values.limit }}`, `{% if x %}`, `${LIMIT}`.

const placeholder = /\{\{[^{}\n]{1,80}\}\}|\{%[^{}\n]{1,80}%\}|\$\{\w{1,80}\}/;
/** The beginning of a line before one that stands outside of quotes and comments. */
const beforePlaceholder = /^[^'"#\n\r\u2028\u2029]*?(?=\{\{|\{%|\$\{)/m;

export const renderHint = 'render the template first, and give what it makes';

/** The first one in a text. */
export function findPlaceholder(text: string): string | undefined {
  return placeholder.exec(text)?.[0];
}

/** Where in a YAML text the first one stands outside of quotes, which is hardly ever valid YAML. */
export function findBarePlaceholder(yaml: string): number | undefined {
  const before = beforePlaceholder.exec(yaml);
  return before === null ? undefined : before.index + before[0].length;
}
