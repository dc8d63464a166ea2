// XML, loaded only for applications with a controller that allows it. Untrusted XML is read into the value that
// equivalent JSON would have: names are fields, repeated names are lists, and text stays text (behaviour: xml). cast.ts
// applies declared types. A value is written so that reading it yields the same fields.
import {
  parseXml,
  XmlDeclaration,
  type XmlDocument,
  XmlDocumentType,
  XmlElement,
  XmlText,
} from '@rgrove/parse-xml';
import { toJsonText } from '../answer/json-text.ts';
import { BadRequest, HttpError } from '../errors.ts';
import type { Limits } from '../limits.ts';
import { refuseUnsafe } from '../request/json.ts';
import { isUtf8 } from '../request/media-type.ts';

/** Field for the text of an element that also has attributes. No element can have this name. */
const textField = '#text';

/** Throws 400 if the text is not XML, is too large, or fits no value; 415 for another encoding. */
export function readXml(text: string, limits: Limits): unknown {
  // Normalizes line ends as XML defines them; the parser would take quadratic time for it.
  const normalized = text.replace(/\r\n?/g, '\n');
  refuseManyNodes(normalized, limits);
  const document = parse(normalized);
  refuseDeclarations(document);
  const { root } = document;
  if (root === null) throw new BadRequest('the body is not XML');
  const value = toValue(root, limits.jsonDepth);
  return typeof value === 'string' && isBlank(value) ? {} : value;
}

/** What begins an element, an attribute, a comment or a section; in a text, too, so that it is refused before the parser
 * builds a tree of it. */
const nodeStart = /<(?!\/)|=\s*["']/g;

function refuseManyNodes(text: string, { xmlNodes }: Limits): void {
  let nodes = 0;
  for (const _node of text.matchAll(nodeStart)) {
    nodes += 1;
    if (nodes <= xmlNodes) continue;
    throw new BadRequest(`the body has more than ${xmlNodes} elements and attributes`);
  }
}

/** Also refuses what is nested so deep that the parser cannot read it. */
function parse(text: string): XmlDocument {
  try {
    return parseXml(text, { preserveXmlDeclaration: true, preserveDocumentType: true });
  } catch (error) {
    const { line, column } = error as { readonly line?: unknown; readonly column?: unknown };
    const position = typeof line === 'number' ? `: see line ${line}, column ${column}` : '';
    throw new BadRequest(`the body is not XML${position}`);
  }
}

/** Document types could define entities, and the bytes were read as UTF-8. */
function refuseDeclarations({ children }: XmlDocument): void {
  if (children.some((node) => node instanceof XmlDocumentType)) {
    throw new BadRequest('the body has a document type, which is not allowed');
  }
  const declaration = children.find((node) => node instanceof XmlDeclaration);
  if (isUtf8(declaration?.encoding ?? undefined)) return;
  throw new HttpError(415, { detail: 'an XML body must be encoded in UTF-8' });
}

function toValue(element: XmlElement, depth: number): unknown {
  if (depth === 0) throw new BadRequest('the body is nested too deep');
  const elements = element.children.filter((node) => node instanceof XmlElement);
  const text = element.children.map((node) => (node instanceof XmlText ? node.text : '')).join('');
  const attributes = Object.entries(element.attributes).filter(
    ([name]) => !/^(?:xmlns$|xmlns:|xml:)/.test(name),
  );
  if (elements.length === 0 && attributes.length === 0) return text;
  if (elements.length > 0 && !isBlank(text)) {
    throw new BadRequest(`the element ${shorten(element.name)} has text beside elements`);
  }
  const fields = new Map<string, unknown>(attributes);
  for (const [name, same] of Map.groupBy(elements, (inner) => inner.name)) {
    if (fields.has(name)) {
      throw new BadRequest(
        `the element ${shorten(element.name)} has an attribute and an element of one name`,
      );
    }
    const values = same.map((inner) => toValue(inner, depth - 1));
    fields.set(name, values.length > 1 ? values : values[0]);
  }
  if (!isBlank(text)) fields.set(textField, text);
  for (const [name, value] of fields) refuseUnsafe(name, value);
  return Object.fromEntries(fields);
}

/** Whether it is empty or XML white space. */
function isBlank(text: string): boolean {
  return !/[^ \t\n\r]/.test(text);
}

function shorten(name: string): string {
  return name.length > 64 ? `${name.slice(0, 64)}...` : name;
}

type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

/** Excludes the colon, which would make a prefix; names that begin with xml are reserved. */
const plainName = /^(?![xX][mM][lL])[[\p{L}_]--[ªµº]][[\p{L}\p{M}\p{Nd}._·\-]--[ªµº]]*$/v;
/** XML cannot express any other character, not even as a character reference. */
const sayable = /^[\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]*$/u;

/** Throws a TypeError if the value has no JSON text, or contains a name or a character that XML does not allow. */
export function writeXml(value: unknown): string {
  const pieces = ['<?xml version="1.0" encoding="UTF-8"?>\n'];
  writeElement(pieces, 'value', JSON.parse(toJsonText(value)) as Json);
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
