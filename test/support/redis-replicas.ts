// A replica for each master of a Redis cluster, for tests that lose any of them.
import { eventually } from './eventually.ts';
import { freePort } from './free-port.ts';
import type { RedisCluster } from './redis-cluster.ts';
import { type RedisServer, startRedisServer } from './redis-server.ts';

const nodeTimeoutMs = 1_000;
/** Nodes tell one another what they know by and by, on a busy machine slowly. */
const gossipMs = 20_000;

export interface RedisReplicas {
  /** In the order of the cluster's masters. */
  readonly servers: readonly RedisServer[];
  stop(): Promise<void>;
}

/** Resolves when each replica follows its master and every master can vote for it. */
export async function startRedisReplicas({ masters }: RedisCluster): Promise<RedisReplicas> {
  const servers: RedisServer[] = [];
  const stop = async () => {
    await Promise.all(servers.map((server) => server.stop()));
  };
  try {
    for (const _ of masters) servers.push(await startReplica());
    await follow(masters, servers);
  } catch (error) {
    await stop();
    throw error;
  }
  return { servers, stop };
}

async function startReplica(): Promise<RedisServer> {
  return startRedisServer({
    args: [
      ...['--cluster-enabled', 'yes', '--cluster-node-timeout', String(nodeTimeoutMs)],
      ...['--cluster-port', String(await freePort()), '--cluster-replica-validity-factor', '0'],
    ],
  });
}

async function follow(
  masters: readonly RedisServer[],
  replicas: readonly RedisServer[],
): Promise<void> {
  const [first] = masters;
  if (first === undefined) throw new Error('a cluster without masters');
  const all = [...masters, ...replicas];
  for (const replica of replicas) {
    const setting = (await replica.command('CONFIG', 'GET', 'cluster-port')) as string[];
    await first.command('CLUSTER', 'MEET', '127.0.0.1', replica.port, Number(setting[1]));
  }
  for (const node of all) {
    await eventually(
      'the nodes know each other',
      async () => {
        const info = String(await node.command('CLUSTER', 'INFO'));
        return (
          info.includes('cluster_state:ok') && info.includes(`cluster_known_nodes:${all.length}`)
        );
      },
      gossipMs,
    );
  }
  const ids = await Promise.all(masters.map((master) => master.command('CLUSTER', 'MYID')));
  for (const [index, replica] of replicas.entries()) {
    await replica.command('CLUSTER', 'REPLICATE', String(ids[index]));
  }
  for (const replica of replicas) {
    await eventually(
      'the replica follows',
      async () =>
        String(await replica.command('INFO', 'replication')).includes('master_link_status:up'),
      gossipMs,
    );
  }
  for (const node of all) {
    await eventually(
      'every replica is known',
      async () => {
        const nodes = String(await node.command('CLUSTER', 'NODES'));
        return ids.every((id) => nodes.includes(`slave ${id}`));
      },
      gossipMs,
    );
  }
}
