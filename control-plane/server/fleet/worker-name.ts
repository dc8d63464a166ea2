// The name of a worker in human-readable messages. Pure.

export interface NamedWorker {
  readonly node: { readonly id: string };
  /** `<host>:<port>`. */
  readonly address: string;
  /** One start of a Ratelane worker; undefined for workers of other makes. */
  readonly instance: string | undefined;
}

const maxIdLength = 200;
/** Number of characters of an instance that distinguish it from others; `/workers` has all of them. */
const shownLength = 8;

/** Such as `edge-1`, or `default (instance 3f2a91c0)` if other workers have the same node id. */
export function toWorkerName({ node, address, instance }: NamedWorker, isShared: boolean): string {
  const id = node.id === '' ? address : node.id.slice(0, maxIdLength);
  if (!isShared) return id;
  if (instance !== undefined) return `${id} (instance ${instance.slice(0, shownLength)})`;
  return node.id === '' ? id : `${id} (at ${address})`;
}

/** Node ids that more than one of the workers has. */
export function findSharedIds(
  workers: readonly { readonly node: { readonly id: string } }[],
): ReadonlySet<string> {
  const seen = new Set<string>();
  const shared = new Set<string>();
  for (const { node } of workers) (seen.has(node.id) ? shared : seen).add(node.id);
  return shared;
}

/** Why a second stream of the same start of a worker is refused; `address` is that of the first stream. */
export function toAlreadyConnected(instance: string, nodeId: string, address: string): string {
  const who = `instance '${instance.slice(0, maxIdLength)}' of worker '${nodeId.slice(0, maxIdLength)}'`;
  return `${who} is connected already, from ${address}`;
}
