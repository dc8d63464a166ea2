// One memcached server: its lanes, the probe that detects its recovery, and the log of its failures and recoveries.
import type { Clock } from '../../../shared/clock.ts';
import { type HostPort, showHostPort } from '../../../shared/host-port.ts';
import type { Log } from '../../../shared/log.ts';
import { createRepeatedLog } from '../../../shared/repeated-log.ts';
import type { FailureMode } from '../failure/failure-mode.ts';
import type { Outages } from '../failure/outages.ts';
import type { KnownExpiries } from '../known-expiries.ts';
import {
  type Connection,
  type ConnectionDeps,
  type ConnectionTls,
  openConnection,
} from './connection.ts';
import { MemcachedLane } from './memcached-lane.ts';
import type { MemcachedMetrics } from './memcached-metrics.ts';

/** Time limit of connecting and of each answer: the reference's 500 ms. */
const timeoutMs = 500;
/** The pause between two probes for its recovery. */
const probePauseMs = 250;
/** How often a lasting failure is logged. */
const failureIntervalMs = 10_000;

const consequences = {
  error: 'its counters count as 0',
  allow: 'decisions are allowed without it',
  deny: 'decisions are denied without it',
  local: 'its counters count in this process alone',
};

export interface MemcachedNodeDeps {
  readonly address: HostPort;
  /** Called for each connection. */
  readonly tls: () => ConnectionTls | undefined;
  readonly jitterMaxSeconds: number;
  readonly knownExpiries: KnownExpiries;
  readonly failureMode: FailureMode;
  /** A breaker is added to it. */
  readonly outages: Outages;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: MemcachedMetrics;
  readonly onIdle: () => void;
}

export interface MemcachedNode {
  /** `host:port`. */
  readonly name: string;
  readonly isIdle: boolean;
  /** The reason if it is unreachable. */
  readonly failure: string | undefined;
  /** The lane with this index; created on first use. */
  lane(index: number): MemcachedLane;
  /** Closes it as soon as no reading or change is pending. */
  retire(): void;
  /** Closes it now. Returns how many changes of counters are lost. */
  close(): number;
}

export function createMemcachedNode(deps: MemcachedNodeDeps): MemcachedNode {
  const { address, clock, log } = deps;
  const name = showHostPort(address);
  const lanes = new Map<number, MemcachedLane>();
  const callDuration = deps.metrics.callDuration(name);
  const open = (onEnd: ConnectionDeps['onEnd']) =>
    openConnection({ address, tls: deps.tls(), timeoutMs, callDuration, clock, onEnd });
  const probe = createNodeProbe({ open, clock, onAnswer: probeAnswered });
  const breaker = deps.outages.addServer(`memory cache ${name}`, (state) => {
    if (state !== 'open') return;
    for (const lane of lanes.values()) lane.rest();
    probe.start();
  });
  let failure: string | undefined;
  let isRetired = false;
  const failureLog = createRepeatedLog({
    clock,
    intervalMs: failureIntervalMs,
    write: (text) =>
      log.error(
        `memory cache ${name}: ${text}; ${consequences[deps.failureMode]} until it answers`,
      ),
  });
  const refusals = createRepeatedLog({
    clock,
    intervalMs: failureIntervalMs,
    write: (text) => log.error(`memory cache ${name}: ${text}`),
  });
  const node: MemcachedNode = {
    name,
    get isIdle() {
      return isIdle();
    },
    get failure() {
      return failure;
    },
    lane(index) {
      const lane = lanes.get(index) ?? createLane();
      lanes.set(index, lane);
      return lane;
    },
    retire() {
      isRetired = true;
      breaker.remove();
      if (isIdle()) close();
    },
    close,
  };
  return node;

  function createLane(): MemcachedLane {
    return new MemcachedLane({
      open,
      isAway: () => breaker.state !== 'closed',
      clock,
      metrics: deps.metrics,
      jitterMaxSeconds: deps.jitterMaxSeconds,
      knownExpiries: deps.knownExpiries,
      onFailure(reason, isAway) {
        failure = reason;
        failureLog.report(reason);
        if (isAway) breaker.open(reason);
      },
      onAnswer,
      refusals,
      onIdle() {
        if (isRetired && isIdle()) close();
        deps.onIdle();
      },
    });
  }

  function probeAnswered(): void {
    onAnswer();
    breaker.halfOpen();
    breaker.close();
  }

  function onAnswer(): void {
    if (failure === undefined) return;
    failure = undefined;
    const outage = failureLog.recover();
    if (outage === undefined) return;
    const { seconds, times } = outage;
    log.notice(
      `memory cache ${name}: answers again after ${seconds.toFixed(1)} s (${times} failures)`,
    );
  }

  function isIdle(): boolean {
    for (const lane of lanes.values()) if (!lane.isIdle) return false;
    return true;
  }

  function close(): number {
    probe.close();
    let lost = 0;
    for (const lane of lanes.values()) lost += lane.close();
    return lost;
  }
}

interface NodeProbeDeps {
  readonly open: (onEnd: () => void) => Promise<Connection>;
  readonly clock: Clock;
  /** Called when it has answered, which ends the probe. */
  readonly onAnswer: () => void;
}

interface NodeProbe {
  /** Starts the probe, unless it is running. */
  start(): void;
  /** Ends it for good. Idempotent. */
  close(): void;
}

/** Asks for the server's version on short connections, one after the other. Lanes send nothing meanwhile. */
function createNodeProbe({ open, clock, onAnswer }: NodeProbeDeps): NodeProbe {
  let isRunning = false;
  let closed = false;
  let connection: Connection | undefined;
  let cancelNext: (() => void) | undefined;

  function attempt(): void {
    open(() => {}).then(ask, again);
  }

  function ask(opened: Connection): void {
    if (closed) {
      opened.destroy();
      return;
    }
    connection = opened;
    opened.send('version\r\n', (answer) => {
      connection = undefined;
      if (answer instanceof Error) {
        again();
        return;
      }
      opened.destroy();
      isRunning = false;
      onAnswer();
    });
  }

  function again(): void {
    if (!closed) cancelNext = clock.after(probePauseMs, attempt);
  }

  return {
    start() {
      if (isRunning || closed) return;
      isRunning = true;
      attempt();
    },
    close() {
      closed = true;
      cancelNext?.();
      connection?.destroy();
    },
  };
}
