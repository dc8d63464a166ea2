// The marks that reader and writer of XML share, for what elements and texts cannot express alone.
// Documented in the README.

/** Namespace of the prefix; the prefix is recognised literally. */
export const marksNamespace = 'urn:ratelane:json';
export const marksPrefix = 'json:';
/** The type that the element holds: one of `markedTypes`. */
export const typeMark = 'json:type';
/** On the only item of a list. */
export const itemMark = 'json:item';
/** Element of a field whose name is no XML name: the attribute `name` has it, escaped as in a JSON string. */
export const fieldElement = 'json:field';

export const markedTypes = ['object', 'array', 'string', 'number', 'boolean', 'null'] as const;
export type MarkedType = (typeof markedTypes)[number];

/** Field for the text of an element whose attributes hold fields too. No element can have this name. */
export const textField = '#text';

/** Whether it is empty or XML white space. */
export function isBlank(text: string): boolean {
  return !/[^ \t\n\r]/.test(text);
}
