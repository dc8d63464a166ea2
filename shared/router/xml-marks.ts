// What reader and writer of XML agree on: the marks for what elements and texts cannot say alone.
// The README tells people the same.

/** Of the prefix, which is understood as it is written. */
export const marksNamespace = 'urn:ratelane:json';
export const marksPrefix = 'json:';
/** What the element holds: one of `markedTypes`. */
export const typeMark = 'json:type';
/** On the only item of a list. */
export const itemMark = 'json:item';
/** A field whose name is no XML name has it in the attribute `name`, as within a JSON string. */
export const fieldElement = 'json:field';

export const markedTypes = ['object', 'array', 'string', 'number', 'boolean', 'null'] as const;
export type MarkedType = (typeof markedTypes)[number];

/** Of an element whose attributes hold fields too. No element can have this name. */
export const textField = '#text';

/** Whether XML would call it white space, or nothing. */
export function isBlank(text: string): boolean {
  return !/[^ \t\n\r]/.test(text);
}
