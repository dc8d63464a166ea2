// Repairs the descriptions of our .proto files for reflection. The library omits imports, uses relative type names, and
// has its own names for map entries, all of which Go clients refuse; and it omits the JSON names of fields. The numbers
// below are those of google/protobuf/descriptor.proto.
import type { PackageDefinition } from '@grpc/proto-loader';
import { bytesType, toFieldHead, toVarint } from '../../../shared/wire/field-bytes.ts';

const inFile = { name: 1, package: 2, dependency: 3, message: 4, enum: 5, service: 6 };
const inMessage = { name: 1, field: 2, message: 3, enum: 4, options: 7 };
const inField = { name: 1, typeName: 6, jsonName: 10 };
const inService = { method: 2 };
const inMethod = { input: 2, output: 3 };
const inOptions = { mapEntry: 7 };

/** A field of a message, encoded; `value` is without tag and length. */
interface Field {
  readonly number: number;
  readonly wireType: number;
  value: Buffer;
}

export function repairDescriptions(definition: PackageDefinition): PackageDefinition {
  const files = new Map<string, Field[]>();
  for (const entry of Object.values(definition)) {
    for (const bytes of descriptionsOf(entry)) {
      const fields = parseFields(bytes);
      const name = textOf(fields, inFile.name);
      if (!files.has(name)) files.set(name, fields);
    }
  }
  // First the final names of all types, then the references to them.
  const fileOfType = new Map<string, string>();
  for (const [file, fields] of files) nameTypes(fields, file, fileOfType);
  const repaired = [...files].map(([file, fields]) => linkTypes(fields, file, fileOfType));
  return Object.fromEntries(
    Object.entries(definition).map(([name, entry]) => [
      name,
      descriptionsOf(entry).length === 0 ? entry : { ...entry, fileDescriptorProtos: repaired },
    ]),
  ) as PackageDefinition;
}

function descriptionsOf(entry: object): readonly Buffer[] {
  const { fileDescriptorProtos } = entry as { readonly fileDescriptorProtos?: unknown };
  return Array.isArray(fileDescriptorProtos) ? (fileDescriptorProtos as Buffer[]) : [];
}

function nameTypes(fields: Field[], file: string, fileOfType: Map<string, string>): void {
  const scope = `.${textOf(fields, inFile.package)}`;
  for (const field of fields) {
    if (field.number === inFile.message) field.value = nameMessage(field.value, scope, note);
    else if (field.number === inFile.enum) note(nameIn(field.value, scope));
  }

  function note(name: string): void {
    fileOfType.set(name, file);
  }
}

function nameMessage(bytes: Buffer, scope: string, note: (name: string) => void): Buffer {
  const fields = parseFields(bytes);
  const name = `${scope}.${textOf(fields, inMessage.name)}`;
  note(name);
  const mapFields = fields.filter(({ number }) => number === inMessage.field);
  for (const field of fields) {
    if (field.number === inMessage.enum) note(nameIn(field.value, name));
    else if (field.number === inMessage.message) {
      renameMapEntry(field, mapFields);
      field.value = nameMessage(field.value, name, note);
    }
  }
  return toBytes(fields);
}

/** Names the entry of a map after the map's field, in CamelCase and followed by `Entry`. */
function renameMapEntry(nested: Field, siblings: readonly Field[]): void {
  const fields = parseFields(nested.value);
  const options = fields.find(({ number }) => number === inMessage.options);
  const isMapEntry =
    options !== undefined &&
    parseFields(options.value).some(({ number, value }) => {
      return number === inOptions.mapEntry && value[0] === 1;
    });
  if (!isMapEntry) return;
  const before = textOf(fields, inMessage.name);
  for (const sibling of siblings) {
    const field = parseFields(sibling.value);
    if (textOf(field, inField.typeName) !== before) continue;
    const entry = `${toCamelCase(`_${textOf(field, inField.name)}`)}Entry`;
    setText(fields, inMessage.name, entry);
    setText(field, inField.typeName, entry);
    sibling.value = toBytes(field);
  }
  nested.value = toBytes(fields);
}

function linkTypes(fields: Field[], file: string, fileOfType: ReadonlyMap<string, string>): Buffer {
  const scope = `.${textOf(fields, inFile.package)}`;
  const imports = new Set<string>();
  for (const field of fields) {
    if (field.number === inFile.message) field.value = linkMessage(field.value, scope, link);
    else if (field.number === inFile.service) field.value = linkService(field.value, scope, link);
  }
  const dependencies = [...imports].sort().map((name) => toField(inFile.dependency, name));
  return toBytes([...fields, ...dependencies]);

  /** The absolute name of a type referenced in a scope: the innermost match. */
  function link(name: string, from: string): string {
    if (name === '' || name.startsWith('.')) return name;
    for (let outer = from; ; outer = outer.slice(0, outer.lastIndexOf('.'))) {
      const found = fileOfType.get(`${outer}.${name}`);
      if (found !== undefined) {
        if (found !== file) imports.add(found);
        return `${outer}.${name}`;
      }
      if (outer === '') throw new Error(`${file} uses ${name}, which is not described`);
    }
  }
}

type Link = (name: string, scope: string) => string;

function linkMessage(bytes: Buffer, scope: string, link: Link): Buffer {
  const fields = parseFields(bytes);
  const name = `${scope}.${textOf(fields, inMessage.name)}`;
  for (const field of fields) {
    if (field.number === inMessage.message) field.value = linkMessage(field.value, name, link);
    else if (field.number === inMessage.field) {
      const linked = linkTexts(field.value, [inField.typeName], name, link);
      field.value = Buffer.concat([linked, jsonNameOf(linked)]);
    }
  }
  return toBytes(fields);
}

function jsonNameOf(field: Buffer): Buffer {
  const name = textOf(parseFields(field), inField.name);
  return toBytes([toField(inField.jsonName, toCamelCase(name))]);
}

function linkService(bytes: Buffer, scope: string, link: Link): Buffer {
  const fields = parseFields(bytes);
  for (const field of fields) {
    if (field.number !== inService.method) continue;
    field.value = linkTexts(field.value, [inMethod.input, inMethod.output], scope, link);
  }
  return toBytes(fields);
}

function linkTexts(bytes: Buffer, numbers: readonly number[], scope: string, link: Link): Buffer {
  const fields = parseFields(bytes);
  for (const field of fields) {
    if (numbers.includes(field.number)) field.value = Buffer.from(link(`${field.value}`, scope));
  }
  return toBytes(fields);
}

function nameIn(bytes: Buffer, scope: string): string {
  return `${scope}.${textOf(parseFields(bytes), inMessage.name)}`;
}

function toCamelCase(name: string): string {
  return name.replace(/_(.)/g, (_match, letter: string) => letter.toUpperCase());
}

function textOf(fields: readonly Field[], number: number): string {
  return String(fields.find((field) => field.number === number)?.value ?? '');
}

function setText(fields: readonly Field[], number: number, text: string): void {
  for (const field of fields) if (field.number === number) field.value = Buffer.from(text);
}

function toField(number: number, text: string): Field {
  return { number, wireType: bytesType, value: Buffer.from(text) };
}

/** Only parses varints and length-delimited fields: our own descriptions have no others. */
function parseFields(bytes: Buffer): Field[] {
  const fields: Field[] = [];
  let position = 0;
  const readVarint = () => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes.readUInt8(position++);
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
  };
  while (position < bytes.length) {
    const tag = readVarint();
    const wireType = tag % 8;
    const start = position;
    const length = readVarint();
    const from = wireType === bytesType ? position : start;
    if (wireType === bytesType) position += length;
    fields.push({ number: Math.floor(tag / 8), wireType, value: bytes.subarray(from, position) });
  }
  return fields;
}

function toBytes(fields: readonly Field[]): Buffer {
  return Buffer.concat(
    fields.flatMap(({ number, wireType, value }) => [
      wireType === bytesType ? toFieldHead(number, value.length) : toVarint(number * 8 + wireType),
      value,
    ]),
  );
}
