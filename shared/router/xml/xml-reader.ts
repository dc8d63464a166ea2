// Reads untrusted XML into the value that the same JSON would have: names are fields, repeated names are
// lists, and text stays text (behaviour: xml). cast.ts applies declared types.
import { parseXml, XmlDeclaration, type XmlDocument, XmlElement, XmlText } from '@rgrove/parse-xml';
import { BadRequest, HttpError } from '../errors.ts';
import type { Limits } from '../limits.ts';
import { refuseUnsafe } from '../request/json.ts';
import { refuseXmlSize } from './xml-size.ts';

/** Field for the text of an element whose attributes hold fields too. No element can have this name. */
const textField = '#text';

/** Throws 400 for what is no XML, is too large, or fits no value; 415 for another encoding. */
export function readXml(text: string, limits: Limits): unknown {
  // Line ends as XML defines them; the parser takes quadratic time for the same.
  const normalized = text.replace(/\r\n?/g, '\n');
  refuseXmlSize(normalized, limits);
  const document = parse(normalized);
  refuseEncoding(document);
  const { root } = document;
  if (root === null) throw new BadRequest('the body is not XML');
  const value = toValue(root);
  return typeof value === 'string' && isBlank(value) ? {} : value;
}

function parse(text: string): XmlDocument {
  try {
    return parseXml(text, { preserveXmlDeclaration: true });
  } catch (error) {
    const { line, column } = error as { readonly line?: unknown; readonly column?: unknown };
    const place = typeof line === 'number' ? `: see line ${line}, column ${column}` : '';
    throw new BadRequest(`the body is not XML${place}`);
  }
}

/** The bytes were read as UTF-8, so the declaration must not name another encoding. */
function refuseEncoding({ children }: XmlDocument): void {
  const declaration = children.find((node) => node instanceof XmlDeclaration);
  const encoding = declaration?.encoding?.toLowerCase() ?? 'utf-8';
  if (encoding !== 'utf-8' && encoding !== 'us-ascii') {
    throw new HttpError(415, { detail: 'an XML body must be encoded in UTF-8' });
  }
}

/** Recursive, as deep as the bounds allow. */
function toValue(element: XmlElement): unknown {
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
    const values = same.map(toValue);
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
