// Fields of a descriptor that the public RateLimitConfig message lacks: they are sent in the descriptor's metadata,
// under one reserved key, to workers that announce support (behaviour: fields-of-our-own). descriptor.ts defines their
// meaning.

import { toExcerpt } from '../../text-excerpt.ts';
import type { StructMessage, ValueMessage } from '../../wire/struct-message.ts';
import { listShape } from '../limit-shape.ts';
import type { Reporter } from '../problem/reporter.ts';
import type { JsonObject, JsonValue } from '../rule.ts';
import type { RuleDescriptor } from '../rule-document.ts';
import { toTimeText } from '../rule-end.ts';
import { descriptorFlags, type RuleKey, ruleKeys } from '../rule-keys.ts';
import { joinPath } from '../yaml/map-reader.ts';
import { toLimitObject } from './rule-object.ts';

/**
 * The reserved key of a descriptor's metadata. Its value is a mapping with the fields that are set,
 * by their names in YAML. The same key in a node's metadata, with any value, announces a worker that
 * reads them.
 */
export const extensionsKey = 'ratelane.fields';

/** A worker that does not announce it gets no rule with an end: it would apply the rule for ever. */
const endField = 'until';

/** Contains the author's metadata where it cannot be beside the reserved key. */
const allMetadata = 'metadata';

const extensionFields = descriptorFlags.filter(({ wire }) => wire === 'extension');

/** Flags that are fields of the public message. */
export const publicFlags = descriptorFlags.filter((flag) => flag.wire === 'public');

const extensionKeys = (ruleKeys as readonly RuleKey[])
  .filter(({ isExtension }) => isExtension)
  .map(({ name }) => name);

/** Added to the metadata of a worker's node: announces that it reads the fields. */
export const extensionsAnnouncement: readonly [key: string, value: string] = [
  extensionsKey,
  [...extensionFields.map(({ name }) => name), ...extensionKeys, 'rate_limits'].join(' '),
];

/** Whether a node that announces this under the reserved key can end rules by itself. */
export function announcesEnds(announced: string): boolean {
  return announced.split(' ').includes(endField);
}

/** Names of the fields that the descriptor has set. */
export function listExtensions(descriptor: RuleDescriptor): string[] {
  const { rateLimit, furtherLimits, untilMs, ...flags } = descriptor;
  return [
    ...(untilMs === undefined ? [] : [endField]),
    ...extensionFields.filter(({ property }) => flags[property]).map(({ name }) => name),
    ...(rateLimit && furtherLimits.length === 0 ? listShape(rateLimit).map(([name]) => name) : []),
    ...(furtherLimits.length > 0 ? ['rate_limits'] : []),
  ];
}

/**
 * The extensions that a descriptor has, with their values: the fields of its limit as one value, a list of limits as
 * another.
 */
export function toExtensions(descriptor: RuleDescriptor): [name: string, value: JsonValue][] {
  const { rateLimit, furtherLimits } = descriptor;
  const fields: [string, JsonValue][] = extensionFields
    .filter(({ property }) => descriptor[property])
    .map(({ name }) => [name, true]);
  if (descriptor.untilMs !== undefined) fields.push([endField, toTimeText(descriptor.untilMs)]);
  if (rateLimit === undefined) return fields;
  if (furtherLimits.length > 0) {
    fields.push(['rate_limits', [rateLimit, ...furtherLimits].map(toLimitObject)]);
  } else if (listShape(rateLimit).length > 0) {
    fields.push(['rate_limit', Object.fromEntries(listShape(rateLimit))]);
  }
  return fields;
}

/** The descriptor's metadata, with `fields` packed into it; undefined when there is neither. */
export function packMetadata(
  metadata: JsonObject | undefined,
  fields: readonly (readonly [name: string, value: JsonValue])[],
): StructMessage | undefined {
  const isReserved = metadata !== undefined && Object.hasOwn(metadata, extensionsKey);
  if (fields.length === 0 && !isReserved) return metadata && toStruct(metadata);
  const packed: [string, JsonValue][] = fields.map(([name, value]) => [name, value]);
  // An empty mapping would read as absent metadata once the reserved key is removed.
  const isComplete = isReserved || (metadata !== undefined && Object.keys(metadata).length === 0);
  if (isComplete) packed.push([allMetadata, metadata]);
  const beside = isComplete ? [] : Object.entries(metadata ?? {});
  return toStruct(Object.fromEntries([...beside, [extensionsKey, Object.fromEntries(packed)]]));
}

export interface UnpackedMetadata {
  /** The author's metadata; undefined without any. */
  readonly metadata: StructMessage | undefined;
  /** The fields by their names in YAML; their values are not yet checked. */
  readonly fields: readonly (readonly [string, ValueMessage])[];
}

/**
 * The reverse of `packMetadata`; reports metadata that `packMetadata` cannot have written. `path` is the descriptor's.
 */
export function unpackMetadata(
  message: StructMessage | null | undefined,
  path: string,
  reporter: Reporter,
): UnpackedMetadata {
  const all = Object.entries(message?.fields ?? {});
  const packed = all.find(([name]) => name === extensionsKey)?.[1];
  if (packed === undefined) return { metadata: message ?? undefined, fields: [] };
  const keyPath = joinPath(joinPath(path, 'metadata'), extensionsKey);
  const beside = all.filter(([name]) => name !== extensionsKey);
  const nothing = { metadata: undefined, fields: [] };
  if (packed.structValue === undefined) {
    const message = `metadata key '${extensionsKey}' is reserved`;
    reporter.error('invalid-metadata', undefined, keyPath, message, rename);
    return nothing;
  }
  let metadata = beside.length === 0 ? undefined : { fields: Object.fromEntries(beside) };
  const fields: (readonly [string, ValueMessage])[] = [];
  for (const [name, value] of Object.entries(packed.structValue.fields ?? {})) {
    if (knownFields.has(name)) fields.push([name, value]);
    else if (name === allMetadata && value.structValue !== undefined && metadata === undefined) {
      metadata = { fields: value.structValue.fields ?? {} };
    } else {
      const message = `unknown field '${toExcerpt(name)}' under the reserved metadata key '${extensionsKey}'`;
      reporter.error('unknown-key', undefined, joinPath(keyPath, name), message, update);
    }
  }
  return { metadata, fields };
}

const knownFields: ReadonlySet<string> = new Set([
  ...extensionFields.map(({ name }) => name),
  endField,
  'rate_limit',
  'rate_limits',
]);

const rename = 'give this metadata another name';
const update = 'if the control plane is newer than this worker, update the worker';

export function toStruct(object: JsonObject): StructMessage {
  const members = Object.entries(object).map(([name, value]) => [name, toValue(value)] as const);
  // Unlike an assignment, fromEntries makes `__proto__` a member like any other.
  return { fields: Object.fromEntries(members) };
}

function toValue(value: JsonValue): ValueMessage {
  if (value === null) return { nullValue: 0 };
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value === 'number') return { numberValue: value };
  if (typeof value === 'string') return { stringValue: value };
  if (Array.isArray(value)) return { listValue: { values: value.map(toValue) } };
  return { structValue: toStruct(value) };
}
