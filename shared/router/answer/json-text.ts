// The JSON text of a value of the application. What JSON would lose without a word is an error.

/** Throws a TypeError for what has no JSON text, and where a map, an error, a promise or the like would become `{}`. */
export function toJsonText(value: unknown): string {
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) throw hasNoText(typeof value);
  if (text.includes('{}')) JSON.stringify(value, refuseLost);
  return text;
}

/** `Object` is a class of the application, too, which has its own fields. */
const ownKinds: ReadonlySet<string> = new Set(['Object', 'Array', 'Number', 'String', 'Boolean']);

function refuseLost(_name: string, value: unknown): unknown {
  const isEmpty = typeof value === 'object' && value !== null && Object.keys(value).length === 0;
  const kind = isEmpty ? Object.prototype.toString.call(value).slice('[object '.length, -1) : '';
  if (isEmpty && !ownKinds.has(kind)) throw hasNoText(kind);
  return value;
}

function hasNoText(kind: string): TypeError {
  return new TypeError(`a value (${kind}) has no JSON text`);
}
