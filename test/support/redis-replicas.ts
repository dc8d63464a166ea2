// A replica for each master of a Redis cluster, for tests that lose any of them.
import { eventually } from './eventually.ts';
import type { Owner } from './owner.ts';
import { introduce, type RedisCluster, startClusterNode } from './redis-cluster.ts';
import type { RedisServer } from './redis-server.ts';

/** Nodes tell one another what they know by and by, on a busy machine slowly. */
const gossipMs = 60_000;

/** In the order of the cluster's masters. Resolves when each replica follows its master and every master can vote for it. */
export async function startRedisReplicas(
  t: Owner,
  { masters, nodeTimeoutMs }: RedisCluster,
): Promise<RedisServer[]> {
  const servers: RedisServer[] = [];
  for (const _ of masters) servers.push(await startClusterNode(t, nodeTimeoutMs));
  await follow(masters, servers);
  return servers;
}

async function follow(
  masters: readonly RedisServer[],
  replicas: readonly RedisServer[],
): Promise<void> {
  const all = [...masters, ...replicas];
  await introduce(all);
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
