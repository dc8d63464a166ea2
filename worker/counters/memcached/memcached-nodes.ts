// The nodes over which counters are distributed: a configured list, or an SRV record that is looked up regularly; with
// the TLS files that all nodes share.
import { createSecureContext } from 'node:tls';
import { crc32 } from 'node:zlib';
import type { Clock } from '../../../shared/clock.ts';
import { AppError, errorText } from '../../../shared/errors.ts';
import { type HostPort, showHostPort } from '../../../shared/host-port.ts';
import type { Log } from '../../../shared/log.ts';
import { createRepeatedLog } from '../../../shared/repeated-log.ts';
import { readTlsFiles, type TlsMaterial, TlsWatch, withTrustedCas } from '../../../shared/tls.ts';
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

/** The source of the list of nodes; must be the same for all workers. */
export type NodeSource =
  | { readonly kind: 'list'; readonly addresses: readonly HostPort[] }
  | {
      readonly kind: 'srv';
      /** `_service._proto.name`. */
      readonly name: string;
      /** The name of the setting, for messages. */
      readonly setting: string;
      /** The time between the end of a lookup and the start of the next one; 0 for a single lookup. */
      readonly refreshMs: number;
    };

export interface MemcachedNodesOptions {
  readonly source: NodeSource;
  /** MEMSTORE_MAX_IDLE_CONNS: connections to each node; a value below 1 means 2 (behaviour: memory-cache-nodes). */
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
  /** A breaker for each node is added to it. */
  readonly outages: Outages;
  /** Called when no reading or change is pending on a node. */
  readonly onIdle: () => void;
}

export const tlsIntervalMs = 30_000;
const defaultConnections = 2;
const refreshFailureIntervalMs = 30_000;

export class MemcachedNodes {
  readonly #options: MemcachedNodesOptions;
  readonly #deps;
  readonly #source;
  readonly #tls;
  readonly #clock;
  readonly #log;
  readonly #metrics;
  readonly #connectionCount;
  readonly #knownExpiries = createKnownExpiries();
  #nodes: readonly MemcachedNode[] = [];
  /** Nodes that are no longer in the list, but have pending work. */
  readonly #retired = new Set<MemcachedNode>();
  #connectionTls: ConnectionTls | undefined;
  #tlsWatch: TlsWatch | undefined;
  #cancelRefresh: (() => void) | undefined;
  #isClosed = false;
  readonly #refreshFailures;

  constructor(options: MemcachedNodesOptions, deps: MemcachedNodesDeps) {
    this.#options = options;
    this.#deps = deps;
    this.#source = options.source;
    this.#tls = options.tls;
    this.#clock = deps.clock;
    this.#log = deps.log;
    this.#metrics = deps.metrics;
    this.#connectionCount =
      options.maxIdleConnections < 1 ? defaultConnections : options.maxIdleConnections;
    this.#refreshFailures = createRepeatedLog({
      clock: deps.clock,
      intervalMs: refreshFailureIntervalMs,
      write: (text) => deps.log.warning(text),
    });
  }

  /**
   * Resolves when the nodes are known. Rejects with `cannot_start` for an unusable file or record, and with the reason
   * of `signal` when it aborts.
   */
  async start(signal: AbortSignal): Promise<void> {
    if (this.#tls !== undefined) await this.#startTls(this.#tls);
    if (this.#source.kind === 'list') {
      this.#setNodes(this.#source.addresses);
    } else {
      this.#setNodes(await unlessAborted(this.#lookUpFirst(this.#source), signal));
      this.#scheduleRefresh();
    }
    signal.throwIfAborted();
    // Detects an unreachable node before a decision needs it.
    for (const node of this.#nodes) node.lane(0).warm();
  }

  async #startTls({ files, skipHostnameVerification }: ClientTlsOptions): Promise<void> {
    const reading = await readTlsFiles(files);
    if (!reading.ok) throw new AppError('cannot_start', `memory cache: ${reading.problem}`);
    const use = ({ ca, cert, key }: TlsMaterial) => {
      const context = createSecureContext({ ca: withTrustedCas(ca), cert, key });
      this.#connectionTls = { context, skipHostnameVerification };
    };
    use(reading.material);
    this.#tlsWatch = new TlsWatch({
      files,
      material: reading.material,
      clock: this.#clock,
      intervalMs: tlsIntervalMs,
      onChange: use,
      onProblem: (problem) =>
        this.#log.error(`memory cache: ${problem}; the previous files stay in use`),
    });
  }

  #lookUpFirst({ name, setting }: NodeSource & { readonly kind: 'srv' }) {
    return resolveNodes(name, this.#deps.resolveSrv).catch((error: unknown) => {
      throw new AppError(
        'cannot_start',
        `memory cache: the nodes of ${name} cannot be looked up (${errorText(error)}); name an SRV record that exists in ${setting}, or list the nodes in ${setting.replace(/SRV$/, 'HOST_PORT')}`,
      );
    });
  }

  #scheduleRefresh(): void {
    if (this.#source.kind !== 'srv' || this.#source.refreshMs <= 0 || this.#isClosed) return;
    const { name } = this.#source;
    this.#cancelRefresh = this.#clock.after(this.#source.refreshMs, () => {
      void resolveNodes(name, this.#deps.resolveSrv)
        .then(
          (addresses) => this.#refreshed(addresses),
          (error: unknown) => {
            this.#refreshFailures.report(
              `memory cache: the nodes of ${name} cannot be looked up (${errorText(error)}); the known ones stay in use`,
            );
          },
        )
        .then(() => this.#scheduleRefresh());
    });
  }

  #refreshed(addresses: readonly HostPort[]): void {
    if (this.#isClosed) return;
    if (this.#refreshFailures.recover() !== undefined) {
      this.#log.notice(`memory cache: the nodes can be looked up again`);
    }
    const before = listNames(this.#nodes);
    this.#setNodes(addresses);
    const after = listNames(this.#nodes);
    if (before !== after)
      this.#log.notice(`memory cache: the nodes are now ${after}, were ${before}`);
  }

  #setNodes(addresses: readonly HostPort[]): void {
    const known = new Map(this.#nodes.map((node) => [node.name, node]));
    const next = addresses.map((address) => {
      const name = showHostPort(address);
      const node = known.get(name) ?? this.#createNode(address);
      known.set(name, node);
      return node;
    });
    const gone = this.#nodes.filter((node) => !next.includes(node));
    this.#nodes = next;
    for (const node of gone) {
      this.#retired.add(node);
      node.retire();
    }
    this.#forgetRetired();
  }

  #createNode(address: HostPort): MemcachedNode {
    return createMemcachedNode({
      address,
      tls: () => this.#connectionTls,
      jitterMaxSeconds: this.#options.jitterMaxSeconds,
      knownExpiries: this.#knownExpiries,
      failureMode: this.#options.failureMode,
      outages: this.#deps.outages,
      clock: this.#clock,
      log: this.#log,
      metrics: this.#metrics,
      onIdle: () => {
        this.#forgetRetired();
        this.#deps.onIdle();
      },
    });
  }

  #forgetRetired(): void {
    for (const node of this.#retired) if (node.isIdle) this.#retired.delete(node);
  }

  /** The lane of a counter; undefined without any node. */
  laneOf(key: string): MemcachedLane | undefined {
    if (this.#nodes.length === 0) return undefined;
    const { node, connection } = chooseNode(key, this.#nodes.length, this.#connectionCount);
    return this.#nodes[node]?.lane(connection);
  }

  /** Lines for the debug page. */
  describe(): string {
    if (this.#nodes.length === 0) return 'no memory cache is known, so nothing is counted';
    const states = this.#nodes.map(({ name, failure }) =>
      failure === undefined ? name : `${name} (${failure})`,
    );
    return `memory cache ${states.join(', ')}`;
  }

  /** Returns how many changes of counters are lost. Idempotent. */
  close(): number {
    this.#isClosed = true;
    this.#cancelRefresh?.();
    this.#tlsWatch?.close();
    let lost = 0;
    for (const node of [...this.#nodes, ...this.#retired]) lost += node.close();
    this.#nodes = [];
    this.#retired.clear();
    return lost;
  }

  get isIdle(): boolean {
    return [...this.#nodes, ...this.#retired].every((node) => node.isIdle);
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
