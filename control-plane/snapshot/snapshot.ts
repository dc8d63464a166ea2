// A snapshot is all that is served at one moment: resources under a version that follows from their content.
// Implementations of SnapshotProvider build them and choose those of a node.
import { createHash } from 'node:crypto';
import { rateLimitConfigTypeUrl } from '../../shared/wire/discovery.ts';
import { toFieldHead, toStringField } from '../../shared/wire/field-bytes.ts';

export interface Resource {
  /** Unique within a snapshot. */
  readonly name: string;
  /** Derived from the bytes of `any`: equal content has the same version on every replica. */
  readonly version: string;
  /** An encoded google.protobuf.Any that contains a RateLimitConfig. Never written to. */
  readonly any: Buffer;
}

/** Immutable, and replaced as a whole: what is derived from it is cached by identity. */
export interface Snapshot {
  /** Derived from names and versions of the resources: equal content has the same version. */
  readonly version: string;
  /** The resources in the order of their names. */
  readonly resources: ReadonlyMap<string, Resource>;
}

/** A worker's identity from the first request of a stream. */
export interface NodeIdentity {
  readonly id: string;
  readonly cluster: string;
  /** The strings, numbers and booleans of the node's metadata as text; nested values are omitted. */
  readonly metadata: ReadonlyMap<string, string>;
}

export interface SnapshotProvider {
  /** The snapshot for this node; undefined while there is none. Cheap, since it is called for every stream
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

/** Throws when two resources have the same name, which is a defect of the caller. */
export function createSnapshot(resources: Iterable<Resource>): Snapshot {
  const sorted = [...resources].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  const byName = new Map(sorted.map((resource) => [resource.name, resource]));
  if (byName.size !== sorted.length) throw new Error('two resources of a snapshot have one name');
  return { version: toContentVersion(byName), resources: byName };
}

/** The version of a snapshot of these resources, by name, which are in the order of names. */
export function toContentVersion(
  resources: Iterable<readonly [string, { readonly version: string }]>,
): string {
  return toDigest(JSON.stringify(Array.from(resources, ([name, { version }]) => [name, version])));
}

/** 32 hexadecimal digits that stand for this content. */
export function toDigest(content: Buffer | string): string {
  return createHash('sha256').update(content).digest('hex').slice(0, 32);
}
