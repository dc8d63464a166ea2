// A snapshot has everything that is served at one moment: resources under a version derived from their content. Its
// responses are encoded once for all streams that get the same, except for the nonce, a separate field that the sender
// prepends. Sessions decide when to send what; served.ts chooses the snapshot of a node.
import { createHash } from 'node:crypto';
import { rateLimitConfigTypeUrl } from '../../../shared/wire/discovery.ts';

export interface Resource {
  /** Unique within a snapshot. */
  readonly name: string;
  /** Derived from the bytes of `any`: equal content has the same version on every replica. */
  readonly version: string;
  /** An encoded google.protobuf.Any that contains a RateLimitConfig. Never written to. */
  readonly any: Buffer;
}

/** Immutable, and replaced as a unit: values derived from it are cached by identity. */
export interface Snapshot {
  /** Derived from names and versions of the resources: equal content has the same version. */
  readonly version: string;
  /** The resources, sorted by name. */
  readonly resources: ReadonlyMap<string, Resource>;
}

/** Variants of one value for nodes: `extended` for those that announce themselves as Ratelane workers, `lasting` for
 * those of them that cannot end rules by themselves, `standard` for all others (behaviour: fields-of-our-own). Equal
 * variants are the same object. */
export type Variants<Part> = Readonly<Record<Variant, Part>>;
export type Variant = (typeof variants)[number];
export const variants = ['standard', 'lasting', 'extended'] as const;

export function toVariants<Part>(make: (variant: Variant) => Part): Variants<Part> {
  return { standard: make('standard'), lasting: make('lasting'), extended: make('extended') };
}

/** A worker's identity from the first request of a stream. */
export interface NodeIdentity {
  readonly id: string;
  readonly cluster: string;
  /** The strings, numbers and booleans of the node's metadata as text; nested values are omitted. */
  readonly metadata: ReadonlyMap<string, string>;
  /** The version of the rules that it has from an earlier stream; undefined if it has none. */
  readonly holds?: string | undefined;
}

export interface SnapshotProvider {
  /** The snapshot for this node; undefined while there is none. It must be cheap, since it is called for every stream
   * at every change: all nodes of a group get the same object. */
  current(node: NodeIdentity): Snapshot | undefined;
}

/** `config` is an encoded RateLimitConfig. */
export function createResource(name: string, config: Buffer): Resource {
  const any = Buffer.concat([
    toStringField(1, rateLimitConfigTypeUrl),
    toFieldHead(2, config.length),
    config,
  ]);
  return { name, version: toDigest(any), any };
}

/** Throws if two resources have the same name, which is a bug in the caller. */
export function createSnapshot(resources: Iterable<Resource>): Snapshot {
  const sorted = [...resources].sort((a, b) => (a.name < b.name ? -1 : 1));
  const byName = new Map(sorted.map((resource) => [resource.name, resource]));
  if (byName.size !== sorted.length) throw new Error('two resources of a snapshot have one name');
  return { version: toContentVersion(byName), resources: byName };
}

/** The version of a snapshot of these resources, given by name in sorted order. */
export function toContentVersion(
  resources: Iterable<readonly [string, { readonly version: string }]>,
): string {
  return toDigest(JSON.stringify(Array.from(resources, ([name, { version }]) => [name, version])));
}

/** A hash of the content: 32 hexadecimal digits. */
export function toDigest(content: Buffer | string): string {
  return createHash('sha256').update(content).digest('hex').slice(0, 32);
}

/** The versions, by name, that a delta client holds or is assumed to hold. */
export type KnownResources = ReadonlyMap<string, { readonly version: string }>;

/** Parts that are never written to; with a nonce they form one message. */
export type ResponseBody = readonly Buffer[];

export interface DeltaBody {
  readonly bytes: ResponseBody;
  /** Names of the resources that are sent or removed. */
  readonly names: readonly string[];
}

export const noResources: KnownResources = new Map();

/** Bodies are freed with their snapshot. */
const fullBodies = new WeakMap<Snapshot, ResponseBody>();
const deltaBodies = new WeakMap<Snapshot, WeakMap<KnownResources, DeltaBody>>();
const resourceHeads = new WeakMap<Resource, { readonly sotw: Buffer; readonly delta: Buffer }>();

/** A DiscoveryResponse with everything, as one buffer that all subscribers to everything share. */
export function toFullBody(snapshot: Snapshot): ResponseBody {
  return makeOnce(fullBodies, snapshot, () => [Buffer.concat(toSelectedBody(snapshot))]);
}

/** A DiscoveryResponse for a selection: many parts, without copying resources. */
export function toSelectedBody(snapshot: Snapshot): ResponseBody {
  const parts = [toStringField(1, snapshot.version), toStringField(4, rateLimitConfigTypeUrl)];
  for (const resource of snapshot.resources.values()) {
    parts.push(toResourceHeads(resource).sotw, resource.any);
  }
  return parts;
}

/** The delta from `held` to `snapshot`, as one buffer that all clients with the same `held` share. */
export function toSharedDelta(held: KnownResources, snapshot: Snapshot): DeltaBody {
  const bodies = makeOnce(deltaBodies, snapshot, () => new WeakMap());
  return makeOnce(bodies, held, () => {
    const { bytes, names } = toDelta(held, snapshot, new Set());
    return { bytes: [Buffer.concat(bytes)], names };
  });
}

/** The delta from `held` to `snapshot`, in parts; names in `again` are sent whatever the client holds, or listed as
 * removed if the snapshot does not have them. */
export function toDelta(
  held: KnownResources,
  snapshot: Snapshot,
  again: ReadonlySet<string>,
): DeltaBody {
  const parts = [toStringField(1, snapshot.version), toStringField(4, rateLimitConfigTypeUrl)];
  const names: string[] = [];
  for (const resource of snapshot.resources.values()) {
    const { name, version } = resource;
    if (held.get(name)?.version === version && !again.has(name)) continue;
    parts.push(toResourceHeads(resource).delta, resource.any);
    names.push(name);
  }
  for (const name of new Set([...held.keys(), ...again])) {
    if (snapshot.resources.has(name)) continue;
    parts.push(toStringField(6, name));
    names.push(name);
  }
  return { bytes: parts, names };
}

/** Size of the largest message that serves the snapshot: a delta with all resources, which is larger than the state of
 * the world, with the longest nonce. Clients refuse messages beyond their limit (behaviour: response-size). */
export function largestResponseBytes(snapshot: Snapshot): number {
  const { bytes } = toDelta(noResources, snapshot, new Set());
  return bytes.reduce((sum, part) => sum + part.length, 0) + nonceAllowance;
}

/** A nonce is a decimal number: up to 18 digits, a tag and a length. */
const nonceAllowance = 20;

/** The part of a resource's field before its Any, in either protocol. */
function toResourceHeads(resource: Resource): { readonly sotw: Buffer; readonly delta: Buffer } {
  return makeOnce(resourceHeads, resource, ({ name, version, any }) => {
    const sotw = toFieldHead(2, any.length);
    const labels = Buffer.concat([toStringField(3, name), toStringField(1, version), sotw]);
    return { sotw, delta: Buffer.concat([toFieldHead(2, labels.length + any.length), labels]) };
  });
}

function makeOnce<Key extends object, Made>(
  known: WeakMap<Key, Made>,
  key: Key,
  make: (key: Key) => Made,
): Made {
  const made = known.get(key) ?? make(key);
  known.set(key, made);
  return made;
}

/** The wire type of length-delimited fields: texts, bytes and messages. */
const bytesType = 2;

/** Single protobuf fields make a message that no library can assemble: a response for a thousand streams, which share its
 * parts. This is the tag and length of one; its content of `length` bytes follows. */
function toFieldHead(field: number, length: number): Buffer {
  return Buffer.concat([toVarint(field * 8 + bytesType), toVarint(length)]);
}

/** A complete field; empty for an empty text, as in proto3. */
export function toStringField(field: number, text: string): Buffer {
  if (text === '') return Buffer.alloc(0);
  const content = Buffer.from(text);
  return Buffer.concat([toFieldHead(field, content.length), content]);
}

/** `value` is an integer from 0 to 2^53. */
function toVarint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80);
  return Buffer.from([...bytes, rest]);
}
