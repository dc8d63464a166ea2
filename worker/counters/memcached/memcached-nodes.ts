// The nodes that counters are spread over: a configured list, or an SRV record that is looked up
// regularly; with the TLS files that all nodes share.
import { createSecureContext } from 'node:tls';
import { crc32 } from 'node:zlib';
import type { Clock } from '../../../shared/clock.ts';
import { AppError, errorText } from '../../../shared/errors.ts';
import { type HostPort, showHostPort } from '../../../shared/host-port.ts';
import type { Log } from '../../../shared/log.ts';
import { createRepeatedLog } from '../../../shared/repeated-log.ts';
import {
  readTlsFiles,
  type TlsMaterial,
  type TlsWatch,
  watchTlsFiles,
  withTrustedAuthorities,
} from '../../../shared/tls.ts';
import { unlessAborted } from '../../../shared/unless-aborted.ts';
import type { ClientTlsOptions } from '../../client-tls.ts';
import type { FailureMode } from '../failure/failure-mode.ts';
import type { Outages } from '../failure/outages.ts';
import { createKnownExpiries } from '../known-expiries.ts';
import type { ConnectionTls } from './connection.ts';
import type { MemcachedLane } from './memcached-lane.ts';
import type { MemcachedMetrics } from './memcached-metrics.ts';
import { createMemcachedNode, type MemcachedNode } from './memcached-node.ts';
import { type ResolveSrv, resolveNodes } from './srv-record.ts';

/** Where the nodes are; must be the same for all workers. */
export type NodeSource =
  | { readonly kind: 'list'; readonly addresses: readonly HostPort[] }
  | {
      readonly kind: 'srv';
      /** `_service._proto.name`. */
      readonly name: string;
      /** Name of its setting, for texts. */
      readonly setting: string;
      /** How long after a look-up the next one starts; 0: never. */
      readonly refreshMs: number;
    };

export interface MemcachedNodesOptions {
  readonly source: NodeSource;
  /** MEMSTORE_MAX_IDLE_CONNS: connections to each node; below 1 it is 2
   * (behaviour: memory-cache-nodes). */
  readonly maxIdleConnections: number;
  readonly tls: ClientTlsOptions | undefined;
  readonly jitterMaxSeconds: number;
  readonly failureMode: FailureMode;
}

export interface MemcachedNodesDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: MemcachedMetrics;
  readonly resolveSrv: ResolveSrv;
  /** Gets a breaker for each node. */
  readonly outages: Outages;
  /** Called when no reading or change is pending on a node. */
  readonly onIdle: () => void;
}

export interface MemcachedNodes {
  /** Resolves when the nodes are known. Rejects with `cannot_start` for an unusable file or record, and
   * with the reason of `signal` when that aborts. */
  start(signal: AbortSignal): Promise<void>;
  /** The lane of a counter; undefined when there is no node. */
  laneOf(key: string): MemcachedLane | undefined;
  readonly isIdle: boolean;
  /** Lines for the debug page. */
  describe(): string;
  /** Returns how many changes of counters are lost. Idempotent. */
  close(): number;
}

export const tlsIntervalMs = 30_000;
const defaultConnections = 2;
const refreshFailureIntervalMs = 30_000;

export function createMemcachedNodes(
  options: MemcachedNodesOptions,
  deps: MemcachedNodesDeps,
): MemcachedNodes {
  const { source, tls } = options;
  const { clock, log, metrics } = deps;
  const connectionCount =
    options.maxIdleConnections < 1 ? defaultConnections : options.maxIdleConnections;
  const knownExpiries = createKnownExpiries();
  let nodes: readonly MemcachedNode[] = [];
  /** No longer in the list, but with pending work. */
  const retired = new Set<MemcachedNode>();
  let connectionTls: ConnectionTls | undefined;
  let tlsWatch: TlsWatch | undefined;
  let cancelRefresh: (() => void) | undefined;
  let isClosed = false;
  const refreshFailures = createRepeatedLog({
    clock,
    intervalMs: refreshFailureIntervalMs,
    write: (text) => log.warning(text),
  });
  return {
    start,
    laneOf,
    get isIdle() {
      return [...nodes, ...retired].every((node) => node.isIdle);
    },
    describe,
    close,
  };

  async function start(signal: AbortSignal): Promise<void> {
    if (tls !== undefined) await startTls(tls);
    if (source.kind === 'list') {
      setNodes(source.addresses);
    } else {
      setNodes(await unlessAborted(lookUpFirst(source), signal));
      scheduleRefresh();
    }
    signal.throwIfAborted();
    // To report an unreachable node before a decision needs it.
    for (const node of nodes) node.lane(0).warm();
  }

  async function startTls({ files, skipHostnameVerification }: ClientTlsOptions): Promise<void> {
    const reading = await readTlsFiles(files);
    if (!reading.ok) throw new AppError('cannot_start', `memory cache: ${reading.problem}`);
    const use = ({ ca, cert, key }: TlsMaterial) => {
      const context = createSecureContext({ ca: withTrustedAuthorities(ca), cert, key });
      connectionTls = { context, skipHostnameVerification };
    };
    use(reading.material);
    tlsWatch = watchTlsFiles({
      files,
      material: reading.material,
      clock,
      intervalMs: tlsIntervalMs,
      onChange: use,
      onProblem: (problem) => log.error(`memory cache: ${problem}; the previous files stay in use`),
    });
  }

  function lookUpFirst({ name, setting }: NodeSource & { readonly kind: 'srv' }) {
    return resolveNodes(name, deps.resolveSrv).catch((error: unknown) => {
      throw new AppError(
        'cannot_start',
        `memory cache: the nodes of ${name} cannot be looked up (${errorText(error)}); name an SRV record that exists in ${setting}, or list the nodes in ${setting.replace(/SRV$/, 'HOST_PORT')}`,
      );
    });
  }

  function scheduleRefresh(): void {
    if (source.kind !== 'srv' || source.refreshMs <= 0 || isClosed) return;
    const { name } = source;
    cancelRefresh = clock.after(source.refreshMs, () => {
      void resolveNodes(name, deps.resolveSrv)
        .then(refreshed, (error: unknown) => {
          refreshFailures.report(
            `memory cache: the nodes of ${name} cannot be looked up (${errorText(error)}); the known ones stay in use`,
          );
        })
        .then(scheduleRefresh);
    });
  }

  function refreshed(addresses: readonly HostPort[]): void {
    if (isClosed) return;
    if (refreshFailures.recover() !== undefined) {
      log.notice(`memory cache: the nodes can be looked up again`);
    }
    const before = listNames(nodes);
    setNodes(addresses);
    const after = listNames(nodes);
    if (before !== after) log.notice(`memory cache: the nodes are now ${after}, were ${before}`);
  }

  function setNodes(addresses: readonly HostPort[]): void {
    const known = new Map(nodes.map((node) => [node.name, node]));
    const next = addresses.map((address) => {
      const name = showHostPort(address);
      const node = known.get(name) ?? createNode(address);
      known.set(name, node);
      return node;
    });
    const gone = nodes.filter((node) => !next.includes(node));
    nodes = next;
    for (const node of gone) {
      retired.add(node);
      node.retire();
    }
    forgetRetired();
  }

  function createNode(address: HostPort): MemcachedNode {
    return createMemcachedNode({
      address,
      tls: () => connectionTls,
      jitterMaxSeconds: options.jitterMaxSeconds,
      knownExpiries,
      failureMode: options.failureMode,
      outages: deps.outages,
      clock,
      log,
      metrics,
      onIdle() {
        forgetRetired();
        deps.onIdle();
      },
    });
  }

  function forgetRetired(): void {
    for (const node of retired) if (node.isIdle) retired.delete(node);
  }

  function laneOf(key: string): MemcachedLane | undefined {
    if (nodes.length === 0) return undefined;
    const { node, connection } = chooseNode(key, nodes.length, connectionCount);
    return nodes[node]?.lane(connection);
  }

  function describe(): string {
    if (nodes.length === 0) return 'no memory cache is known, so that nothing is counted';
    const states = nodes.map(({ name, failure }) =>
      failure === undefined ? name : `${name} (${failure})`,
    );
    return `memory cache ${states.join(', ')}`;
  }

  function close(): number {
    isClosed = true;
    cancelRefresh?.();
    tlsWatch?.close();
    let lost = 0;
    for (const node of [...nodes, ...retired]) lost += node.close();
    nodes = [];
    retired.clear();
    return lost;
  }
}

function listNames(nodes: readonly MemcachedNode[]): string {
  return nodes.map(({ name }) => name).join(', ');
}

interface NodeChoice {
  /** Index in the list of nodes. */
  readonly node: number;
  /** Index among the connections to that node: a key always uses the same one. */
  readonly connection: number;
}

/** The node of a counter: workers with the same list agree, the reference included (behaviour: memory-cache-nodes).
 * CRC-32 (IEEE) of the key modulo the number of nodes. Both counts are above 0. */
export function chooseNode(key: string, nodeCount: number, connectionCount: number): NodeChoice {
  const hash = crc32(key);
  return { node: hash % nodeCount, connection: Math.floor(hash / nodeCount) % connectionCount };
}
