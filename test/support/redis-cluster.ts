// A Redis cluster of real servers on loopback, with its slots spread evenly over the masters; slots can be moved, and
// nodes lost.
import { eventually } from './eventually.ts';
import { freePort } from './free-port.ts';
import type { Owner } from './owner.ts';
import { type RedisServer, startRedisServer } from './redis-server.ts';

export interface RedisClusterOptions {
  /** As in RedisServerOptions. */
  readonly program?: string;
  readonly replica?: boolean;
  readonly tls?: readonly string[];
  /** Applied once the cluster is formed; by default longer than a busy machine delays a node. */
  readonly nodeTimeoutMs?: number;
}

const slotCount = 16_384;
const masterCount = 3;
/** Nodes with a short timeout form a cluster sooner. */
const formingTimeoutMs = 1_000;
/** Nodes exchange their knowledge gradually, and slowly on a busy machine. */
const gossipMs = 60_000;

/** With the arguments for TLS, the nodes use it among themselves too, and `url` is for clients with TLS. */
export async function startRedisCluster(t: Owner, options: RedisClusterOptions = {}) {
  const { nodeTimeoutMs = 15_000 } = options;
  const tls = options.tls && [
    ...[...options.tls, '--tls-cluster', 'yes'],
    ...['--tls-replication', 'yes'],
  ];
  const count = masterCount + (options.replica ? 1 : 0);
  const all: RedisServer[] = [];
  for (let index = 0; index < count; index++)
    all.push(await startClusterNode(t, formingTimeoutMs, tls, options.program));
  const masters = all.slice(0, masterCount);
  const replica = all[masterCount];
  const ids = new Map<RedisServer, string>();
  for (const node of all) ids.set(node, String(await node.command('CLUSTER', 'MYID')));
  const idOf = (node: RedisServer) => ids.get(node) ?? '';
  const perMaster = Math.ceil(slotCount / masterCount);
  for (const [index, master] of masters.entries()) {
    const last = Math.min(slotCount, (index + 1) * perMaster) - 1;
    await master.command('CLUSTER', 'ADDSLOTSRANGE', index * perMaster, last);
    await master.command('CLUSTER', 'SET-CONFIG-EPOCH', index + 1);
  }
  const [first] = masters as [RedisServer, ...RedisServer[]];
  await introduce(all);
  const setNodeTimeout = async (ms: number, nodes: readonly RedisServer[] = all) => {
    for (const node of nodes) await node.command('CONFIG', 'SET', 'cluster-node-timeout', ms);
  };
  await setNodeTimeout(nodeTimeoutMs);
  // One of them may have been considered lost just before.
  await introduce(all);
  if (replica !== undefined) {
    await replica.command('CLUSTER', 'REPLICATE', idOf(first));
    await eventually(
      'the replica follows',
      async () =>
        String(await replica.command('INFO', 'replication')).includes('master_link_status:up'),
      gossipMs,
    );
    for (const node of masters) {
      await eventually(
        'the replica is known',
        async () => String(await node.command('CLUSTER', 'NODES')).includes(`slave ${idOf(first)}`),
        gossipMs,
      );
    }
  }

  async function readFrom(node: RedisServer, key: string) {
    const value = await node.command('GET', key).catch(() => null);
    return value === null ? undefined : String(value);
  }

  async function ownerOf(slot: number): Promise<RedisServer> {
    for (const node of all) {
      const slots = await node.command('CLUSTER', 'SLOTS').catch(() => []);
      for (const range of Array.isArray(slots) ? slots : []) {
        const [from, to, master] = range as [number, number, [string, number]];
        const owner = all.find(({ port }) => port === master[1]);
        if (slot >= from && slot <= to && owner !== undefined) return owner;
      }
    }
    throw new Error(`no node serves slot ${slot}`);
  }

  return {
    /** As in KVSTORE_URL with type cluster: all masters. */
    url: masters.map(({ port, tlsPort }) => `127.0.0.1:${tlsPort ?? port}`).join(','),
    masters,
    /** The replica of the first master; only if requested. */
    replica,
    /** Milliseconds of silence after which nodes consider another one lost. */
    nodeTimeoutMs,
    /** Sets on these nodes, or all, when a node is considered lost: for an intended failover. */
    setNodeTimeout,
    /** The counter's value, from the node that has it. */
    async read(key: string) {
      for (const node of all) {
        const value = await readFrom(node, key);
        if (value !== undefined) return value;
      }
      return undefined;
    },
    slotOf: async (key: string) => Number(await first.command('CLUSTER', 'KEYSLOT', key)),
    /** The master that serves the slot, according to the first live one. */
    ownerOf,
    /** Moves a slot and its keys step by step, like resharding; `between` runs while the slot is open. */
    async moveSlot(slot: number, to: RedisServer, between?: () => Promise<void>) {
      const from = await ownerOf(slot);
      await to.command('CLUSTER', 'SETSLOT', slot, 'IMPORTING', idOf(from));
      await from.command('CLUSTER', 'SETSLOT', slot, 'MIGRATING', idOf(to));
      for (;;) {
        const keys = (await from.command('CLUSTER', 'GETKEYSINSLOT', slot, 1)) as string[];
        if (keys.length === 0) break;
        await from.command('MIGRATE', '127.0.0.1', to.port, keys[0] ?? '', 0, 5_000);
      }
      await between?.();
      for (const node of [to, from, ...masters.filter((other) => other !== to && other !== from)])
        await node.command('CLUSTER', 'SETSLOT', slot, 'NODE', idOf(to));
    },
  };
}

export function startClusterNode(
  t: Owner,
  nodeTimeoutMs: number,
  tls?: readonly string[],
  program?: string,
): Promise<RedisServer> {
  return startRedisServer(t, {
    ...(program !== undefined && { program }),
    tls,
    args: async () => [
      ...['--cluster-enabled', 'yes', '--cluster-node-timeout', String(nodeTimeoutMs)],
      ...['--cluster-port', String(await freePort()), '--cluster-replica-validity-factor', '0'],
    ],
  });
}

/** Resolves when each node knows all others, considers none of them lost, and has a cluster that serves. */
export async function introduce(nodes: readonly RedisServer[]): Promise<void> {
  const [first, ...others] = nodes;
  if (first === undefined) return;
  await eventually(
    'the nodes know each other',
    async () => {
      let isDone = true;
      for (const other of others) {
        // The rest is gossip.
        isDone = (await knows(first, other)) && (await knows(other, first)) && isDone;
      }
      if (!isDone) return false;
      for (const node of nodes) {
        const info = String(await node.command('CLUSTER', 'INFO'));
        const isComplete = info.includes(`cluster_known_nodes:${nodes.length}\r`);
        if (!isComplete || !info.includes('cluster_state:ok')) return false;
        if (String(await node.command('CLUSTER', 'NODES')).includes('fail')) return false;
      }
      return true;
    },
    gossipMs,
  );
}

/** Both sides drop a meeting that takes longer than the node timeout: then it is started again. */
async function knows(one: RedisServer, other: RedisServer): Promise<boolean> {
  const [, busPort] = (await other.command('CONFIG', 'GET', 'cluster-port')) as string[];
  const nodes = String(await one.command('CLUSTER', 'NODES')).split('\n');
  const line = nodes.find((text) => text.includes(`@${busPort} `));
  if (line === undefined) {
    const port = other.tlsPort ?? other.port;
    await one.command('CLUSTER', 'MEET', '127.0.0.1', port, Number(busPort));
  }
  return line !== undefined && !line.includes('handshake');
}
