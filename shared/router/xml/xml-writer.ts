// Writes a value as XML that reads as the same fields: a list is repeated elements, everything else a text.

type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

const nameStart =
  'A-Z_a-z\\xc0-\\xd6\\xd8-\\xf6\\xf8-\\u02ff\\u0370-\\u037d\\u037f-\\u1fff\\u200c\\u200d\\u2070-\\u218f' +
  '\\u2c00-\\u2fef\\u3001-\\ud7ff\\uf900-\\ufdcf\\ufdf0-\\ufffd\\u{10000}-\\u{effff}';
const nameMore = '.0-9\\xb7\\u0300-\\u036f\\u203f\\u2040-';
/** Without a colon, which would make a prefix; names that begin with xml are reserved. */
const plainName = new RegExp(`^(?![xX][mM][lL])[${nameStart}][${nameStart}${nameMore}]*$`, 'u');
/** XML cannot express any other character, not even as a number. */
const sayable = /^[\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]*$/u;

/** Throws a TypeError where the value has no JSON text, or a name or a character that XML does not have. */
export function writeXml(value: unknown): string {
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) throw new TypeError(`a ${typeof value} has no JSON text`);
  const pieces = ['<?xml version="1.0" encoding="UTF-8"?>\n'];
  writeElement(pieces, 'value', JSON.parse(text) as Json);
  return pieces.join('');
}

function writeElement(pieces: string[], name: string, value: Json): void {
  pieces.push(`<${name}>`);
  if (isList(value)) {
    for (const item of value) writeElement(pieces, 'item', item);
  } else if (typeof value === 'object' && value !== null) {
    for (const [field, inner] of Object.entries(value)) {
      if (!plainName.test(field)) throw new TypeError(`${field} cannot be the name of an element`);
      for (const one of isList(inner) ? inner : [inner]) writeElement(pieces, field, one);
    }
  } else if (value !== null) {
    const text = String(value);
    if (!sayable.test(text)) throw new TypeError(`XML has not all characters of ${name}`);
    pieces.push(escapeText(text));
  }
  pieces.push(`</${name}>`);
}

const escapes: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '\r': '&#13;',
};

function escapeText(text: string): string {
  return text.replace(/[&<>\r]/g, (character) => escapes[character] ?? character);
}

function isList(value: Json): value is readonly Json[] {
  return Array.isArray(value);
}
