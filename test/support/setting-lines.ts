// Formats settings as lines of text, for scenarios: each value with its path.

/** `path.of.the.setting = value`, in the order of the settings. */
export function toSettingLines(value: unknown, path: readonly string[] = []): string[] {
  const isInner = typeof value === 'object' && value !== null && !(value instanceof RegExp);
  if (isInner && Object.keys(value).length > 0)
    return Object.entries(value).flatMap(([key, inner]) => toSettingLines(inner, [...path, key]));
  return [`${path.join('.')} = ${value instanceof RegExp ? value : JSON.stringify(value)}`];
}
