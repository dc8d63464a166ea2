// Reads untrusted XML into the value that the same JSON would have: names are fields, repeated names are
// lists, and text stays text unless it is marked (behaviour: xml). cast.ts applies declared types.
import { parseXml, XmlDeclaration, type XmlDocument, XmlElement, XmlText } from '@rgrove/parse-xml';
import { BadRequest, HttpError } from '../errors.ts';
import type { Limits } from '../limits.ts';
import { parseJson, refuseUnsafe } from '../request/json.ts';
import {
  fieldElement,
  isBlank,
  itemMark,
  type MarkedType,
  markedTypes,
  marksPrefix,
  textField,
  typeMark,
} from './xml-marks.ts';
import { refuseXmlSize } from './xml-size.ts';

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
  const isEmpty = typeof value === 'string' && isBlank(value) && !(typeMark in root.attributes);
  return isEmpty ? {} : value;
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
  const attributes = dataAttributes(element);
  if (elements.length > 0 && !isBlank(text)) {
    throw new BadRequest(`${nameForPeople(element)} has text beside elements`);
  }
  const type = markedType(element);
  if (type === undefined) {
    return elements.length === 0 && attributes.length === 0
      ? text
      : toObject({ element, attributes, elements, text });
  }
  if (type === 'object') return toObject({ element, attributes, elements, text });
  const isArray = type === 'array';
  if (attributes.length > 0 || (isArray ? !isBlank(text) : elements.length > 0)) {
    throw new BadRequest(`${nameForPeople(element)} holds more than its ${typeMark} allows`);
  }
  return isArray ? elements.map(toValue) : toScalar(element, type, text);
}

interface Parts {
  readonly element: XmlElement;
  readonly attributes: readonly (readonly [string, string])[];
  readonly elements: readonly XmlElement[];
  readonly text: string;
}

function toObject({ element, attributes, elements, text }: Parts): object {
  const byName = new Map<string, XmlElement[]>();
  for (const inner of elements) {
    const name = nameOf(inner);
    const same = byName.get(name);
    if (same === undefined) byName.set(name, [inner]);
    else same.push(inner);
  }
  const fields = new Map<string, unknown>(attributes);
  for (const [name, same] of byName) {
    if (fields.has(name)) {
      throw new BadRequest(`${nameForPeople(element)} has an attribute and an element of one name`);
    }
    const [first] = same;
    const isList = same.length > 1 || (first !== undefined && itemMark in first.attributes);
    const values = same.map(toValue);
    fields.set(name, isList ? values : values[0]);
  }
  if (!isBlank(text)) fields.set(textField, text);
  for (const [name, value] of fields) refuseUnsafe(name, value);
  return Object.fromEntries(fields);
}

function toScalar(element: XmlElement, type: MarkedType, text: string): unknown {
  if (type === 'null' && isBlank(text)) return null;
  const value = parseMarked(text);
  if (value === undefined || (value === null ? 'null' : typeof value) !== type) {
    throw new BadRequest(`${nameForPeople(element)} does not hold the ${type} that it declares`);
  }
  return value;
}

/** Undefined when it is not JSON. */
function parseMarked(text: string): unknown {
  try {
    return parseJson(text, 0);
  } catch {
    return undefined;
  }
}

function markedType({ name, attributes }: XmlElement): MarkedType | undefined {
  const type = attributes[typeMark];
  if (type === undefined) return undefined;
  const known = markedTypes.find((one) => one === type);
  if (known === undefined) throw new BadRequest(`${typeMark} of ${shorten(name)} is not known`);
  return known;
}

/** Without those that mark how the text is meant. */
function dataAttributes({ name, attributes }: XmlElement): (readonly [string, string])[] {
  return Object.entries(attributes).filter(([key]) => {
    if (key.startsWith(marksPrefix) && key !== typeMark && key !== itemMark) {
      throw new BadRequest(`the attribute ${shorten(key)} is not known`);
    }
    return (
      !/^(?:xmlns$|xmlns:|xml:)/.test(key) &&
      !key.startsWith(marksPrefix) &&
      !(name === fieldElement && key === 'name')
    );
  });
}

function nameOf({ name, attributes }: XmlElement): string {
  if (!name.startsWith(marksPrefix)) return name;
  const field = name === fieldElement ? parseMarked(`"${attributes['name'] ?? '"'}"`) : undefined;
  if (typeof field !== 'string') {
    throw new BadRequest(`the element ${shorten(name)} is not known, or has no name`);
  }
  return field;
}

function nameForPeople({ name }: XmlElement): string {
  return `the element ${shorten(name)}`;
}

function shorten(name: string): string {
  return name.length > 64 ? `${name.slice(0, 64)}...` : name;
}
