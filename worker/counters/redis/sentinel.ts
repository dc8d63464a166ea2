// Asks the sentinels for the current master at each attempt to connect, so that reconnecting suffices after a failover.
import type { Clock } from '../../../shared/clock.ts';
import { errorText } from '../../../shared/errors.ts';
import { unlessAborted } from '../../../shared/unless-aborted.ts';
import { type StoreGroup, showStoreAddress, type TcpAddress } from './address.ts';
import { type Connection, toCommandText } from './connection.ts';
import { type OpeningDeps, openConnection } from './connection-opening.ts';
import type { ConnectionTls } from './connection-tls.ts';
import type { Credentials, ReadCredentials } from './credentials.ts';
import { findFirstAnswer } from './first-answer.ts';

export interface MasterOpenerDeps {
  readonly group: StoreGroup & { readonly kind: 'sentinel' };
  /** Credentials of the master. */
  readonly readCredentials: ReadCredentials;
  /** Credentials of the sentinels; undefined for none. */
  readonly sentinelCredentials: Credentials | undefined;
  /** Used for the sentinels as well. */
  readonly tls: ConnectionTls | undefined;
  readonly database: number;
  readonly timeoutMs: number;
  /** Measures calls of the master. */
  readonly callDuration: OpeningDeps['callDuration'];
  /** Aborts the questions. */
  readonly closing: AbortSignal;
  readonly clock: Clock;
}

/** Opens connections to the master that the sentinels name, after checking that it is a master. */
export function createMasterOpener(
  deps: MasterOpenerDeps,
): (signal: AbortSignal) => Promise<Connection> {
  const { group, clock } = deps;
  /** The sentinels in the order in which they are asked: the one that answered last is first. */
  let order = [...group.addresses];
  /** Shared by concurrent attempts. */
  let asking: Promise<TcpAddress> | undefined;

  return async (signal) => {
    asking ??= findMaster().finally(() => {
      asking = undefined;
    });
    const address = await unlessAborted(asking, signal);
    const connection = await openConnection({ ...deps, address }, signal).catch(
      (error: unknown) => {
        throw new Error(`master ${showStoreAddress(address)}: ${errorText(error)}`);
      },
    );
    const role = await readRole(connection);
    if (role === 'master') return connection;
    connection.destroy();
    throw new Error(`${showStoreAddress(address)} is reported as the master but is a ${role}`);
  };

  async function findMaster(): Promise<TcpAddress> {
    const { server, answer } = await findFirstAnswer(
      {
        servers: order,
        ask: askSentinel,
        show: (address) => `sentinel ${showStoreAddress(address)}`,
        clock,
      },
      deps.closing,
    );
    order = [server, ...order.filter((other) => other !== server)];
    return answer;
  }

  async function askSentinel(address: TcpAddress, signal: AbortSignal): Promise<TcpAddress> {
    const readCredentials = () => Promise.resolve(deps.sentinelCredentials);
    const connection = await openConnection(
      { ...deps, address, database: 0, readCredentials, callDuration: undefined },
      signal,
    );
    try {
      const reply = await connection.ask(
        toCommandText('SENTINEL', 'get-master-addr-by-name', group.master),
      );
      if (reply === null) throw new Error(`there is no master named ${group.master}`);
      return parseMaster(reply);
    } finally {
      connection.destroy();
    }
  }
}

function parseMaster(reply: unknown): TcpAddress {
  if (Array.isArray(reply)) {
    const [host, port] = reply.map(String);
    if (host && /^\d{1,5}$/.test(port ?? '')) return { kind: 'tcp', host, port: Number(port) };
  }
  throw new Error('the answer is not the address of a master');
}

/** Also `master` where the command is not allowed: the sentinels are then trusted. */
async function readRole(connection: Connection): Promise<string> {
  try {
    const reply = await connection.ask(toCommandText('ROLE'));
    return Array.isArray(reply) && reply[0] === 'slave' ? 'replica' : 'master';
  } catch (error) {
    if (error instanceof Error && error.name === 'ReplyError') return 'master';
    throw error;
  }
}
