// The counter store over a Redis cluster: a pool for each master, each hit counted by the master of its
// slot. Keeps the map of slots up to date.
import { AppError, errorText } from '../../../shared/errors.ts';
import { createRepeatedLog } from '../../../shared/repeated-log.ts';
import { countInParts, type Part } from '../count-in-parts.ts';
import { toPatienceMs } from '../failure/failure-mode.ts';
import { createKnownExpiries } from '../known-expiries.ts';
import type { CounterStore, CountRequest, Hit } from '../store.ts';
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
/** The least time between refreshes for a reason, such as a lost connection or a moved slot. */
const hastyRefreshMs = 300;
/** How often an unserved slot is logged. */
const unservedIntervalMs = 5_000;
const slotsCommand = toCommandText('CLUSTER', 'SLOTS');

interface Node {
  readonly address: TcpAddress;
  readonly pool: RedisPool;
}

export function createClusterStore(
  options: RedisStoreOptions,
  deps: RedisStoreDeps,
  group: StoreGroup & { readonly kind: 'cluster' },
): CounterStore {
  const { addressSetting, startup } = options;
  const { clock, log } = deps;
  const title = showStoreAddress(group);
  const name = `key-value store ${title}`;
  const connectionDeps = toConnectionDeps(options, deps);
  const totals = createConnectionTotals(deps);
  const knownExpiries = createKnownExpiries();
  const parallelism = toParallelism(options, deps);
  const { describeRemedy } = options.pool;
  const failsDecisions = options.pool.failureMode === 'error';
  const closing = new AbortController();
  const nodes = new Map<string, Node>();
  const owners: (Node | undefined)[] = new Array(slotCount).fill(undefined);
  /** Nodes that can be asked for the map. */
  let known: readonly TcpAddress[] = group.addresses;
  let masters: ReadonlySet<Node> = new Set();
  const unserved = createRepeatedLog({
    clock,
    intervalMs: unservedIntervalMs,
    write: (text) => log.error(failsDecisions ? `a decision failed: ${text}` : text),
  });
  /** Human-readable. */
  let lastFailure: string | undefined;
  let closed = false;
  let refreshing = false;
  let wantsRefresh = false;
  let cancelRefresh: (() => void) | undefined;
  const clockComparison = createStoreClockComparison(deps, name, openAny);
  /** No longer masters, but with requests in flight. */
  const leaving = new Set<RedisPool>();

  return { count, connect, state, close };

  function count(request: CountRequest): void {
    const [firstHit] = request.hits;
    const first = firstHit && owners[toSlot(firstHit.key)];
    if (first !== undefined && request.hits.length === 1) {
      first.pool.batching.count(request);
      return;
    }
    const byNode = new Map<Node, Hit[]>();
    for (const hit of request.hits) {
      const slot = toSlot(hit.key);
      const node = owners[slot];
      if (node === undefined) {
        refreshSoon();
        const error = new AppError('store', `${name}: no node serves slot ${slot}`);
        unserved.report(error.message);
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
    countInParts(request, parts, { parallelism, continuesOnError: !failsDecisions });
  }

  async function connect(signal: AbortSignal): Promise<void> {
    // With a failure mode that answers without the store, the start does not wait for it.
    if (failsDecisions) {
      await awaitFirstConnection(
        {
          ...{ name, addressSetting, describeRemedy, startup, tryToConnect },
          ...{ clock, random: Math.random, log },
        },
        AbortSignal.any([signal, closing.signal]),
      );
      scheduleRefresh(refreshMs);
    } else {
      await startWithoutWaiting();
      // Nothing else logs that there has never been one.
      if (totals.active === 0) deps.onHealthChange(false);
    }
    clockComparison?.start();
  }

  /** Resolves when the map is known, or after the time limit for a silent store. */
  function startWithoutWaiting(): Promise<void> {
    return new Promise((resolve) => {
      const { failureMode, timeoutMs } = options.pool;
      const cancel = clock.after(toPatienceMs(failureMode, timeoutMs), resolve);
      void refresh().then(() => {
        cancel();
        resolve();
      });
    });
  }

  /** Reads the map and waits for one master; the others connect in the background. */
  async function tryToConnect(signal: AbortSignal): Promise<void> {
    // Slower masters keep connecting afterwards, also while the store drains.
    const attempt = new AbortController();
    const giveUp = () => attempt.abort();
    signal.addEventListener('abort', giveUp);
    try {
      apply(await readMap(signal));
      if (masters.size === 0) throw new Error('no node serves a slot');
      await Promise.any([...masters].map(({ pool }) => pool.tryToOpen(attempt.signal))).catch(
        ({ errors }: AggregateError) => {
          throw new Error([...new Set(errors.map(errorText))].join('; '));
        },
      );
      for (const { pool } of masters) pool.keepOpen();
    } catch (error) {
      noteFailure(errorText(error));
      throw error;
    } finally {
      signal.removeEventListener('abort', giveUp);
    }
  }

  async function readMap(signal: AbortSignal): Promise<SlotMap> {
    const isUp = (address: TcpAddress) =>
      (nodes.get(showStoreAddress(address))?.pool.active ?? 0) > 0;
    const servers = known
      .map((address) => ({ address, order: Math.random() + (isUp(address) ? 0 : 1) }))
      .sort((one, other) => one.order - other.order)
      .map(({ address }) => address);
    const { answer } = await findFirstAnswer(
      { servers, ask: askForMap, show: (address) => showStoreAddress(address), clock },
      signal,
    );
    return answer;
  }

  async function askForMap(address: TcpAddress, signal: AbortSignal): Promise<SlotMap> {
    const pool = nodes.get(showStoreAddress(address))?.pool;
    const reply =
      pool !== undefined && pool.active > 0
        ? await new Promise<unknown>((resolve) =>
            pool.sendCommands([slotsCommand], ([raw]) => resolve(raw)),
          )
        : await askOverNewConnection(address, signal);
    if (reply instanceof Error) throw reply;
    const map = parseSlotMap(reply, address.host);
    if (map === undefined) throw new Error('CLUSTER SLOTS was answered with something else');
    return map;
  }

  async function askOverNewConnection(address: TcpAddress, signal: AbortSignal): Promise<unknown> {
    const connection = await open(address, signal);
    try {
      return await connection.ask(slotsCommand);
    } finally {
      connection.destroy();
    }
  }

  function open(address: TcpAddress, signal: AbortSignal): Promise<Connection> {
    return openConnection({ ...connectionDeps, address }, signal);
  }

  async function openAny(signal: AbortSignal): Promise<Connection> {
    const { answer } = await findFirstAnswer(
      { servers: known, ask: open, show: (address) => showStoreAddress(address), clock },
      signal,
    );
    return answer;
  }

  function apply(map: SlotMap): void {
    const current = new Set(map.masters.map(findNode));
    for (const [slot, owner] of map.owners.entries()) owners[slot] = owner && findNode(owner);
    for (const node of nodes.values()) if (!current.has(node)) remove(node);
    masters = current;
    // The configured nodes stay, in case all others are gone.
    const all = [...map.nodes, ...group.addresses];
    known = [...new Map(all.map((address) => [showStoreAddress(address), address])).values()];
  }

  function findNode(address: TcpAddress): Node {
    const text = showStoreAddress(address);
    const found = nodes.get(text);
    if (found !== undefined) return found;
    const pool = createRedisPool(options.pool, {
      name: `key-value store ${text}`,
      addressSetting: options.addressSetting,
      open: (signal) => open(address, signal),
      knownExpiries,
      totals,
      redirect: createRedirect({ fromHost: address.host, sendCommands, onMoved }),
      outages: deps.outages,
      onTrouble: refreshSoon,
      clock,
      log,
    });
    const node = { address, pool };
    nodes.set(text, node);
    return node;
  }

  function sendCommands(
    address: TcpAddress,
    ...[commands, done]: Parameters<RedisPool['sendCommands']>
  ): void {
    if (closed) {
      const error = new Error('the connection was closed');
      setImmediate(() => done(commands.map(() => error)));
      return;
    }
    const { pool } = findNode(address);
    pool.keepOpen();
    pool.sendCommands(commands, done);
  }

  function onMoved({ slot, address }: Redirection): void {
    const node = findNode(address);
    node.pool.keepOpen();
    if (slot < slotCount) owners[slot] = node;
    refreshSoon();
  }

  /** Its requests in flight are still answered. */
  function remove({ address, pool }: Node): void {
    nodes.delete(showStoreAddress(address));
    leaving.add(pool);
    pool.forget();
    void pool.drain(options.pool.timeoutMs).then(() => {
      leaving.delete(pool);
      pool.close();
    });
  }

  function refreshSoon(): void {
    if (wantsRefresh || closing.signal.aborted) return;
    wantsRefresh = true;
    if (!refreshing) scheduleRefresh(hastyRefreshMs);
  }

  function scheduleRefresh(delayMs: number): void {
    cancelRefresh?.();
    if (!closing.signal.aborted)
      cancelRefresh = clock.after(delayMs * (0.5 + Math.random() / 2), () => void refresh());
  }

  function noteFailure(reason: string): void {
    lastFailure = `last failure at ${new Date(clock.wallMs()).toISOString()}: ${reason}`;
  }

  async function refresh(): Promise<void> {
    refreshing = true;
    wantsRefresh = false;
    try {
      const map = await readMap(closing.signal);
      if (closing.signal.aborted) return;
      // A node that knows no master has left the cluster.
      if (map.masters.length > 0) apply(map);
      for (const { pool } of masters) pool.keepOpen();
    } catch (error) {
      const reason = errorText(error);
      noteFailure(reason);
      // Later the nodes log for themselves.
      if (masters.size > 0) return;
      const remedy = describeRemedy(reason);
      unserved.report(`${name}: ${reason}${remedy === undefined ? '' : `; ${remedy}`}`);
    } finally {
      refreshing = false;
      scheduleRefresh(wantsRefresh || masters.size === 0 ? hastyRefreshMs : refreshMs);
    }
  }

  function state() {
    const { active, since } = totals;
    const up = [...masters].filter(({ pool }) => pool.active > 0).length;
    const what =
      active > 0
        ? `connected to ${title} since ${since.toISOString()} (${active} connections to ${up} of ${masters.size} masters)`
        : `not connected to ${title} since ${since.toISOString()}`;
    const trouble = [...masters].map(({ pool }) => pool.trouble).find(Boolean) ?? lastFailure;
    return {
      healthy: active > 0,
      detail: [what, clockComparison?.describe(), trouble].filter(Boolean).join('; '),
    };
  }

  async function close(graceMs: number): Promise<void> {
    closing.abort();
    clockComparison?.close();
    cancelRefresh?.();
    await Promise.all(listPools().map((pool) => pool.drain(graceMs)));
    closed = true;
    totals.close();
    // Late answers may come from further nodes after a redirection.
    for (const pool of listPools()) pool.close();
  }

  function listPools(): RedisPool[] {
    return [...leaving, ...[...nodes.values()].map(({ pool }) => pool)];
  }
}

function toParallelism(
  { clusterParallelism, pool }: RedisStoreOptions,
  { log }: RedisStoreDeps,
): number {
  if (clusterParallelism > pool.size) {
    log.warning(
      `a cluster's parallelism of ${clusterParallelism} is above the pool's size and taken as ${pool.size}`,
    );
  }
  return clusterParallelism === 0 ? pool.size : Math.min(clusterParallelism, pool.size);
}
