// The counter store over a Redis cluster: a pool for each master, each hit counted by the master of its slot. Maintains
// the map of slots.
import { AppError, errorText } from '../../../shared/errors.ts';
import { createRepeatedLog } from '../../../shared/repeated-log.ts';
import { unlessAborted } from '../../../shared/unless-aborted.ts';
import { countInParts, type Part } from '../count-in-parts.ts';
import { toPatienceMs } from '../failure/failure-mode.ts';
import { createKnownExpiries } from '../known-expiries.ts';
import type { CounterStore, CounterStoreState, CountRequest, Hit } from '../store.ts';
import { type StoreGroup, showStoreAddress, type TcpAddress } from './address.ts';
import { type Connection, toCommandText } from './connection.ts';
import { openConnection } from './connection-opening.ts';
import { createConnectionTotals } from './connection-totals.ts';
import { findFirstAnswer } from './first-answer.ts';
import { awaitFirstConnection } from './first-connection.ts';
import { createRedirect, type Redirection } from './redirection.ts';
import { createRedisPool, type RedisPool } from './redis-pool.ts';
import { parseSlotMap, type SlotMap, slotCount, toSlot } from './slots.ts';
import {
  createStoreClockComparison,
  type RedisStoreDeps,
  type RedisStoreOptions,
  toConnectionDeps,
} from './store-deps.ts';

/** How often the map is refreshed. */
const refreshMs = 5_000;
/** The least time between refreshes that have a cause, such as a lost connection or a moved slot. */
const hastyRefreshMs = 300;
/** How often an unserved slot is logged. */
const unservedIntervalMs = 5_000;
const slotsCommand = toCommandText('CLUSTER', 'SLOTS');

interface Node {
  readonly address: TcpAddress;
  readonly pool: RedisPool;
}

export class ClusterStore implements CounterStore {
  readonly #options: RedisStoreOptions;
  readonly #deps;
  readonly #group;
  readonly #clock;
  readonly #log;
  readonly #title;
  readonly #name;
  readonly #connectionDeps;
  readonly #totals;
  readonly #knownExpiries = createKnownExpiries();
  readonly #parallelism;
  readonly #failsDecisions;
  readonly #closing = new AbortController();
  readonly #nodes = new Map<string, Node>();
  readonly #owners: (Node | undefined)[] = new Array(slotCount).fill(undefined);
  /** Nodes that can be asked for the map of slots. */
  #known: readonly TcpAddress[];
  #masters: ReadonlySet<Node> = new Set();
  readonly #unserved;
  /** Human-readable. */
  #lastFailure: string | undefined;
  #closed = false;
  #refreshing = false;
  #wantsRefresh = false;
  #renewedMs = Number.NEGATIVE_INFINITY;
  #cancelRefresh: (() => void) | undefined;
  readonly #clockComparison;
  /** Pools of nodes that are no longer masters, but have requests in flight. */
  readonly #leaving = new Set<RedisPool>();

  constructor(
    options: RedisStoreOptions,
    deps: RedisStoreDeps,
    group: StoreGroup & { readonly kind: 'cluster' },
  ) {
    this.#options = options;
    this.#deps = deps;
    this.#group = group;
    this.#clock = deps.clock;
    this.#log = deps.log;
    this.#title = showStoreAddress(group);
    this.#name = `key-value store ${this.#title}`;
    this.#connectionDeps = toConnectionDeps(options, deps);
    this.#totals = createConnectionTotals(deps);
    this.#parallelism = toParallelism(options, deps);
    this.#failsDecisions = options.pool.failureMode === 'error';
    this.#known = group.addresses;
    this.#unserved = createRepeatedLog({
      clock: deps.clock,
      intervalMs: unservedIntervalMs,
      write: (text) => deps.log.error(this.#failsDecisions ? `a decision failed: ${text}` : text),
    });
    this.#clockComparison = createStoreClockComparison(deps, this.#name, (signal) =>
      this.#openAny(signal),
    );
  }

  count(request: CountRequest): void {
    const [firstHit] = request.hits;
    const first = firstHit && this.#owners[toSlot(firstHit.key)];
    if (first !== undefined && request.hits.length === 1) {
      first.pool.batching.count(request);
      return;
    }
    const byNode = new Map<Node, Hit[]>();
    for (const hit of request.hits) {
      const slot = toSlot(hit.key);
      const node = this.#owners[slot];
      if (node === undefined) {
        this.#refreshSoon();
        const error = new AppError('store', `${this.#name}: no node serves slot ${slot}`);
        this.#unserved.report(error.message);
        setImmediate(() => request.settle(error));
        return;
      }
      const hits = byNode.get(node);
      if (hits === undefined) byNode.set(node, [hit]);
      else hits.push(hit);
    }
    const parts = [...byNode].map(
      ([{ pool }, hits]): Part => ({ hits, count: (request) => pool.batching.count(request) }),
    );
    countInParts(request, parts, {
      parallelism: this.#parallelism,
      continuesOnError: !this.#failsDecisions,
    });
  }

  async connect(signal: AbortSignal): Promise<void> {
    // With a failure mode that answers without the store, the start does not wait for the store.
    if (this.#failsDecisions) {
      await awaitFirstConnection(
        {
          name: this.#name,
          addressSetting: this.#options.addressSetting,
          describeRemedy: this.#options.pool.describeRemedy,
          startup: this.#options.startup,
          tryToConnect: (signal) => this.#tryToConnect(signal),
          clock: this.#clock,
          random: Math.random,
          log: this.#log,
        },
        AbortSignal.any([signal, this.#closing.signal]),
      );
      this.#scheduleRefresh(refreshMs);
    } else {
      await this.#startWithoutWaiting();
      // Nothing else logs that no connection was ever made.
      if (this.#totals.active === 0) this.#deps.onHealthChange(false);
    }
    this.#clockComparison?.start();
  }

  /** Resolves when the map is known, or after the time limit for a silent store. */
  #startWithoutWaiting(): Promise<void> {
    return new Promise((resolve) => {
      const { failureMode, timeoutMs } = this.#options.pool;
      this.#clock.after(toPatienceMs(failureMode, timeoutMs), resolve);
      void this.#refresh().then(resolve);
    });
  }

  /** Reads the map and waits for one master; the others connect in the background. */
  async #tryToConnect(signal: AbortSignal): Promise<void> {
    try {
      this.#apply(await this.#readMap(signal));
      if (this.#masters.size === 0) throw new Error('no node serves a slot');
      // Slower masters continue to connect afterwards, even while the store drains.
      const { signal: never } = new AbortController();
      const first = Promise.any([...this.#masters].map(({ pool }) => pool.tryToOpen(never))).catch(
        ({ errors }: AggregateError) => {
          throw new Error([...new Set(errors.map(errorText))].join('; '));
        },
      );
      await unlessAborted(first, signal);
      for (const { pool } of this.#masters) pool.stayOpen();
    } catch (error) {
      this.#noteFailure(errorText(error));
      throw error;
    }
  }

  async #readMap(signal: AbortSignal): Promise<SlotMap> {
    const isUp = (address: TcpAddress) =>
      (this.#nodes.get(showStoreAddress(address))?.pool.active ?? 0) > 0;
    const servers = this.#known
      .map((address) => ({ address, order: Math.random() + (isUp(address) ? 0 : 1) }))
      .sort((one, other) => one.order - other.order)
      .map(({ address }) => address);
    const { answer } = await findFirstAnswer(
      {
        servers,
        ask: (address, signal) => this.#askForMap(address, signal),
        show: (address) => showStoreAddress(address),
        clock: this.#clock,
      },
      signal,
    );
    return answer;
  }

  async #askForMap(address: TcpAddress, signal: AbortSignal): Promise<SlotMap> {
    const pool = this.#nodes.get(showStoreAddress(address))?.pool;
    const reply =
      pool !== undefined && pool.active > 0
        ? await new Promise<unknown>((resolve) =>
            pool.sendCommands([slotsCommand], ([raw]) => resolve(raw)),
          )
        : await this.#askOverNewConnection(address, signal);
    if (reply instanceof Error) throw reply;
    const map = parseSlotMap(reply, address.host);
    if (map === undefined) throw new Error('the reply to CLUSTER SLOTS is not a list of slots');
    return map;
  }

  async #askOverNewConnection(address: TcpAddress, signal: AbortSignal): Promise<unknown> {
    const connection = await this.#open(address, signal);
    try {
      return await connection.ask(slotsCommand);
    } finally {
      connection.destroy();
    }
  }

  #open(address: TcpAddress, signal: AbortSignal): Promise<Connection> {
    return openConnection({ ...this.#connectionDeps, address }, signal);
  }

  async #openAny(signal: AbortSignal): Promise<Connection> {
    const { answer } = await findFirstAnswer(
      {
        servers: this.#known,
        ask: (address, signal) => this.#open(address, signal),
        show: (address) => showStoreAddress(address),
        clock: this.#clock,
      },
      signal,
    );
    return answer;
  }

  #apply(map: SlotMap): void {
    const current = new Set(map.masters.map((address) => this.#findNode(address)));
    for (const [slot, owner] of map.owners.entries())
      this.#owners[slot] = owner && this.#findNode(owner);
    for (const node of this.#nodes.values()) if (!current.has(node)) this.#remove(node);
    this.#masters = current;
    // The configured nodes stay in the list, in case all others disappear.
    const all = [...map.nodes, ...this.#group.addresses];
    this.#known = [...new Map(all.map((address) => [showStoreAddress(address), address])).values()];
  }

  #findNode(address: TcpAddress): Node {
    const text = showStoreAddress(address);
    const found = this.#nodes.get(text);
    if (found !== undefined) return found;
    const pool = createRedisPool(this.#options.pool, {
      name: `key-value store ${text}`,
      addressSetting: this.#options.addressSetting,
      open: (signal) => this.#open(address, signal),
      knownExpiries: this.#knownExpiries,
      totals: this.#totals,
      redirect: createRedirect({
        fromHost: address.host,
        sendCommands: (address, commands, done) => this.#sendCommands(address, commands, done),
        onMoved: (redirection) => this.#onMoved(redirection),
        onLoop: (redirection) => this.#renew(redirection),
      }),
      outages: this.#deps.outages,
      onFailure: () => this.#refreshSoon(),
      clock: this.#clock,
      log: this.#log,
    });
    const node = { address, pool };
    this.#nodes.set(text, node);
    return node;
  }

  #sendCommands(
    address: TcpAddress,
    ...[commands, done]: Parameters<RedisPool['sendCommands']>
  ): void {
    if (this.#closed) {
      const error = new Error('the connection was closed');
      setImmediate(() => done(commands.map(() => error)));
      return;
    }
    const { pool } = this.#findNode(address);
    pool.stayOpen();
    pool.sendCommands(commands, done);
  }

  #onMoved({ slot, address }: Redirection): void {
    const node = this.#findNode(address);
    node.pool.stayOpen();
    if (slot < slotCount) this.#owners[slot] = node;
    this.#refreshSoon();
  }

  /** Connects again to a node that redirects to itself: another one may have its name or address by now. */
  #renew({ address }: Redirection): void {
    const old = this.#nodes.get(showStoreAddress(address));
    const nowMs = this.#clock.monotonicMs();
    if (old === undefined || this.#closed || nowMs - this.#renewedMs < refreshMs) return;
    this.#renewedMs = nowMs;
    this.#remove(old);
    const node = this.#findNode(address);
    node.pool.stayOpen();
    for (const [slot, owner] of this.#owners.entries()) {
      if (owner === old) this.#owners[slot] = node;
    }
    this.#masters = new Set([...this.#masters].map((each) => (each === old ? node : each)));
  }

  /** Answers its requests in flight before closing. */
  #remove({ address, pool }: Node): void {
    this.#nodes.delete(showStoreAddress(address));
    this.#leaving.add(pool);
    pool.forget();
    void pool.drain(this.#options.pool.timeoutMs).then(() => {
      this.#leaving.delete(pool);
      pool.close();
    });
  }

  #refreshSoon(): void {
    if (this.#wantsRefresh || this.#closing.signal.aborted) return;
    this.#wantsRefresh = true;
    if (!this.#refreshing) this.#scheduleRefresh(hastyRefreshMs);
  }

  #scheduleRefresh(delayMs: number): void {
    this.#cancelRefresh?.();
    if (!this.#closing.signal.aborted)
      this.#cancelRefresh = this.#clock.after(
        delayMs * (0.5 + Math.random() / 2),
        () => void this.#refresh(),
      );
  }

  #noteFailure(reason: string): void {
    this.#lastFailure = `last failure at ${new Date(this.#clock.wallMs()).toISOString()}: ${reason}`;
  }

  async #refresh(): Promise<void> {
    this.#refreshing = true;
    this.#wantsRefresh = false;
    try {
      const map = await this.#readMap(this.#closing.signal);
      if (this.#closing.signal.aborted) return;
      // A node that reports no master has left the cluster.
      if (map.masters.length > 0) this.#apply(map);
      for (const { pool } of this.#masters) pool.stayOpen();
    } catch (error) {
      const reason = errorText(error);
      this.#noteFailure(reason);
      // With masters, the nodes themselves log their failures.
      if (this.#masters.size > 0) return;
      const remedy = this.#options.pool.describeRemedy(reason);
      this.#unserved.report(`${this.#name}: ${reason}${remedy === undefined ? '' : `; ${remedy}`}`);
    } finally {
      this.#refreshing = false;
      this.#scheduleRefresh(
        this.#wantsRefresh || this.#masters.size === 0 ? hastyRefreshMs : refreshMs,
      );
    }
  }

  state(): CounterStoreState {
    const { active, since } = this.#totals;
    const up = [...this.#masters].filter(({ pool }) => pool.active > 0).length;
    const what =
      active > 0
        ? `connected to ${this.#title} since ${since.toISOString()} (${active} connections to ${up} of ${this.#masters.size} masters)`
        : `not connected to ${this.#title} since ${since.toISOString()}`;
    const problem =
      [...this.#masters].map(({ pool }) => pool.lastProblem).find(Boolean) ?? this.#lastFailure;
    return {
      healthy: active > 0,
      detail: [what, this.#clockComparison?.describe(), problem].filter(Boolean).join('; '),
    };
  }

  async close(graceMs: number): Promise<void> {
    this.#closing.abort();
    this.#clockComparison?.close();
    this.#cancelRefresh?.();
    await Promise.all(this.#listPools().map((pool) => pool.drain(graceMs)));
    this.#closed = true;
    this.#totals.close();
    // Late answers may come from further nodes after a redirection.
    for (const pool of this.#listPools()) pool.close();
  }

  #listPools(): RedisPool[] {
    return [...this.#leaving, ...[...this.#nodes.values()].map(({ pool }) => pool)];
  }
}

function toParallelism(
  { clusterParallelism, pool }: RedisStoreOptions,
  { log }: RedisStoreDeps,
): number {
  if (clusterParallelism > pool.size) {
    log.warning(
      `the cluster's parallelism ${clusterParallelism} is above the pool's size: ${pool.size} is used`,
    );
  }
  return clusterParallelism === 0 ? pool.size : Math.min(clusterParallelism, pool.size);
}
