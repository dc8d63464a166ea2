// A Redis master with a replica, watched by three real sentinels that promote the replica when the master is silent.
import { connect } from 'node:net';
import { eventually } from './eventually.ts';
import type { Owner } from './owner.ts';
import { type RedisServer, startRedisServer } from './redis-server.ts';

export interface RedisSentinels {
  /** As in KVSTORE_URL with type sentinel. */
  readonly url: string;
  /** The first master and its successor. */
  readonly servers: readonly [RedisServer, RedisServer];
  readonly sentinels: readonly RedisServer[];
  /** The master according to the sentinels. */
  findMaster(): Promise<RedisServer>;
  /** Resolves when the first sentinel announces another master to its subscribers. Call it before. */
  announcement(): Promise<void>;
  /** Sets after how long the sentinels consider a silent master gone; without a number, as at the start, so long that a
   * busy machine does not cause it. */
  setDownAfter(ms?: number): Promise<void>;
  /** Resolves when every sentinel names this server as the master. */
  agreement(server: RedisServer): Promise<void>;
}

export interface RedisSentinelsOptions {
  /** Password of the sentinels. */
  readonly sentinelPassword?: string;
  /** Password of the servers. */
  readonly password?: string;
  /** The arguments for TLS, which the servers then use among themselves, and which `url` is for. */
  readonly tls?: readonly string[];
}

const masterName = 'main';
const patientDownAfterMs = 60_000;
/** Sentinels exchange information every ten seconds, and on a busy machine they pause for thirty. */
const newsMs = 90_000;

export async function startRedisSentinels(
  t: Owner,
  { password, sentinelPassword, tls: tlsArgs }: RedisSentinelsOptions = {},
): Promise<RedisSentinels> {
  const tls = tlsArgs && [...tlsArgs, '--tls-replication', 'yes'];
  const portOf = (server: RedisServer) => server.tlsPort ?? server.port;
  const passwordArgs = password ? ['--requirepass', password, '--masterauth', password] : [];
  const auth = password ? { auth: [password] } : {};
  const master = await startRedisServer(t, { args: passwordArgs, tls, ...auth });
  const replica = await startRedisServer(t, {
    args: [...passwordArgs, '--replicaof', `127.0.0.1 ${portOf(master)}`],
    tls,
    ...auth,
  });
  await eventually('the replica follows', async () =>
    /master_link_status:up/.test(String(await replica.command('INFO', 'replication'))),
  );
  const sentinels = await Promise.all(
    [1, 2, 3].map(() =>
      startRedisServer(t, {
        tls,
        sentinel: [
          `sentinel monitor ${masterName} 127.0.0.1 ${portOf(master)} 2`,
          `sentinel down-after-milliseconds ${masterName} ${patientDownAfterMs}`,
          `sentinel failover-timeout ${masterName} 3000`,
          ...(password ? [`sentinel auth-pass ${masterName} ${password}`] : []),
          ...(sentinelPassword
            ? [`requirepass ${sentinelPassword}`, `sentinel sentinel-pass ${sentinelPassword}`]
            : []),
        ],
        ...(sentinelPassword ? { auth: [sentinelPassword] } : {}),
      }),
    ),
  );
  for (const sentinel of sentinels) {
    await eventually(
      'the sentinels know each other and the replica',
      async () => {
        const others = await sentinel.command('SENTINEL', 'SENTINELS', masterName);
        const replicas = await sentinel.command('SENTINEL', 'REPLICAS', masterName);
        return (
          [others, replicas].every(Array.isArray) &&
          String(others).split('runid').length === 3 &&
          String(replicas).includes('slave')
        );
      },
      newsMs,
    );
  }
  const findMasterPort = async (sentinel: RedisServer) => {
    const reply = await sentinel.command('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', masterName);
    return Array.isArray(reply) ? Number(reply[1]) : undefined;
  };
  return {
    url: [masterName, ...sentinels.map((each) => `127.0.0.1:${portOf(each)}`)].join(','),
    servers: [master, replica],
    sentinels,
    async findMaster() {
      const [sentinel] = sentinels;
      const port = sentinel && (await findMasterPort(sentinel));
      return port === portOf(replica) ? replica : master;
    },
    announcement: () => Promise.any(sentinels.map(awaitSwitch)),
    async setDownAfter(ms = patientDownAfterMs) {
      for (const sentinel of sentinels)
        await sentinel.command('SENTINEL', 'SET', masterName, 'down-after-milliseconds', ms);
    },
    agreement: (server) =>
      eventually(
        'the sentinels agree on the master',
        async () => {
          const ports = await Promise.all(sentinels.map(findMasterPort));
          return ports.every((port) => port === portOf(server));
        },
        newsMs,
      ),
  };
}

/** On a connection that ends with the sentinel at the latest. */
function awaitSwitch({ port = 0 }: RedisServer): Promise<void> {
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(port, '127.0.0.1');
    socket.unref();
    socket.write('SUBSCRIBE +switch-master\r\n');
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      if (!text.includes(`message\r\n$14\r\n+switch-master\r\n`)) return;
      socket.destroy();
      resolve();
    });
    socket.once('error', reject);
    socket.once('close', () => reject(new Error('the sentinel announced nothing')));
  });
}
