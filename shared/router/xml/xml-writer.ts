// Writes a value as XML that readXml reads back as the same value. The README describes the format.
import {
  fieldElement,
  isBlank,
  itemMark,
  type MarkedType,
  marksNamespace,
  typeMark,
} from './xml-marks.ts';

type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

const nameStart =
  'A-Z_a-z\\xc0-\\xd6\\xd8-\\xf6\\xf8-\\u02ff\\u0370-\\u037d\\u037f-\\u1fff\\u200c\\u200d\\u2070-\\u218f' +
  '\\u2c00-\\u2fef\\u3001-\\ud7ff\\uf900-\\ufdcf\\ufdf0-\\ufffd\\u{10000}-\\u{effff}';
const nameMore = '.0-9\\xb7\\u0300-\\u036f\\u203f\\u2040-';
/** Without a colon, which would make a prefix; names that begin with xml are reserved. */
const plainName = new RegExp(`^(?![xX][mM][lL])[${nameStart}][${nameStart}${nameMore}]*$`, 'u');
/** XML cannot express any other character, not even as a number. */
const sayable = /^[\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]*$/u;

/** Throws where the value has no JSON text. */
export function writeXml(value: unknown): string {
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) throw new TypeError(`a ${typeof value} has no JSON text`);
  const pieces = ['<?xml version="1.0" encoding="UTF-8"?>\n'];
  const root = JSON.parse(text) as Json;
  const begin = `value xmlns:json="${marksNamespace}"`;
  // An empty root stands for no fields.
  if (typeof root === 'string' && isBlank(root)) {
    writeMarked(pieces, begin, 'string', toJsonText(root));
  } else {
    writeElement(pieces, begin, root);
  }
  return pieces.join('');
}

/** `begin` is the start tag without its brackets. */
function writeElement(pieces: string[], begin: string, value: Json): void {
  if (value === null) {
    pieces.push(`<${begin} ${typeMark}="null"/>`);
  } else if (typeof value === 'string') {
    if (sayable.test(value)) pieces.push(`<${begin}>`, escapeText(value), endOf(begin));
    else writeMarked(pieces, begin, 'string', toJsonText(value));
  } else if (typeof value !== 'object') {
    writeMarked(pieces, begin, typeof value as 'number' | 'boolean', String(value));
  } else if (isList(value)) {
    pieces.push(`<${begin} ${typeMark}="array">`);
    for (const item of value) writeElement(pieces, 'item', item);
    pieces.push(endOf(begin));
  } else {
    const fields = Object.entries(value);
    pieces.push(`<${begin}${fields.length === 0 ? ` ${typeMark}="object"` : ''}>`);
    for (const [name, field] of fields) writeField(pieces, name, field);
    pieces.push(endOf(begin));
  }
}

/** A list is written as repeated elements where that is unambiguous. */
function writeField(pieces: string[], name: string, value: Json): void {
  const begin = plainName.test(name)
    ? name
    : `${fieldElement} name="${escapeText(toJsonText(name).slice(1, -1))}"`;
  if (!isList(value) || value.length === 0) {
    writeElement(pieces, begin, value);
    return;
  }
  const mark = value.length === 1 ? ` ${itemMark}="true"` : '';
  for (const item of value) writeElement(pieces, `${begin}${mark}`, item);
}

function writeMarked(pieces: string[], begin: string, type: MarkedType, text: string): void {
  pieces.push(`<${begin} ${typeMark}="${type}">`, escapeText(text), endOf(begin));
}

function endOf(begin: string): string {
  const at = begin.indexOf(' ');
  return `</${at < 0 ? begin : begin.slice(0, at)}>`;
}

/** A quoted text, with characters that XML can express. */
function toJsonText(text: string): string {
  return JSON.stringify(text).replace(/[\ufffe\uffff]/g, (character) =>
    character === '\ufffe' ? '\\ufffe' : '\\uffff',
  );
}

const escapes: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  '\r': '&#13;',
};

function escapeText(text: string): string {
  return text.replace(/[&<>"\r]/g, (character) => escapes[character] ?? character);
}

function isList(value: Json): value is readonly Json[] {
  return Array.isArray(value);
}
