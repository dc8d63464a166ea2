// The JSON text of an application's value. Values that JSON would silently lose are an error.

/** Throws a TypeError for a value without a JSON text, and if a map, an error, a promise or the like would become
 * `{}`. */
export function toJsonText(value: unknown): string {
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) throw hasNoText(typeof value);
  if (text.includes('{}')) JSON.stringify(value, refuseLost);
  return text;
}

/** `Object` also covers the application's own classes. */
const ownKinds: ReadonlySet<string> = new Set(['Object', 'Array', 'Number', 'String', 'Boolean']);

function refuseLost(name: string, value: unknown): unknown {
  const isEmpty = typeof value === 'object' && value !== null && Object.keys(value).length === 0;
  const kind = isEmpty ? Object.prototype.toString.call(value).slice('[object '.length, -1) : '';
  if (isEmpty && !ownKinds.has(kind)) throw hasNoText(kind, name);
  return value;
}

function hasNoText(kind: string, name = ''): TypeError {
  return new TypeError(`${name || 'a value'} (${kind}) has no JSON text`);
}
