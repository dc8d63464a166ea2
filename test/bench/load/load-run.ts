// One run of the generator: opens the connections, generates the load, reports the relevant moments, and sums up.
import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterPause, sharpenPauses } from '../../../worker/fine-pause.ts';
import { readCpuUs } from '../process-usage.ts';
import { LoadConnection } from './load-connection.ts';
import { createRequestTemplate } from './request-template.ts';
import { createTally, type Tally } from './tally.ts';

export interface LoadOptions {
  readonly port: number;
  /** The CA of the service's certificate, in PEM; undefined: cleartext. */
  readonly tlsCa: string | undefined;
  readonly connections: number;
  /** Concurrent requests on each connection, as far as the service allows. */
  readonly streams: number;
  /** The key of each descriptor. */
  readonly descriptorKeys: readonly string[];
  readonly distinctKeys: number;
  /** `sequence`: in order, so that a key is only repeated after all others have been used. */
  readonly keyOrder: 'random' | 'sequence';
  readonly hasTrace: boolean;
  /** Requests per second, on time whatever is answered; undefined: one for each answer. */
  readonly ratePerSecond: number | undefined;
  readonly warmUpMs: number;
  readonly measuredMs: number;
  /** The service's processes, whose CPU time is measured. */
  readonly pids: readonly number[];
  readonly expected: { readonly overallCode: number; readonly statuses: number | undefined };
}

export type LoadMoment = 'begin' | 'half' | 'end';

export interface Percentiles {
  readonly p99: number;
  readonly p999: number;
}

export interface LoadResult {
  readonly seconds: number;
  /** Answers received in the measured time. */
  readonly answered: number;
  readonly serviceCpuUs: number;
  readonly latencyUs: Percentiles;
  /** Only in an open loop. */
  readonly sendLagUs: Percentiles | undefined;
  /** Requests that were due but not sent when the time was over: the rate was not reached. */
  readonly unsent: number;
  readonly failures: Readonly<Record<string, number>>;
}

const domain = 'bench';
const timeoutMs = 2_000;
const connectTimeoutMs = 5_000;
/** How often an open loop polls for answers while some are pending. */
const pauseMs = 0.05;
/** After a stall, due requests are sent in batches of this size, so that answers are read in between. */
const burst = 256;
const inputLength = 256 * 1024;

/** `onMoment` receives the number of answers so far. */
export async function runLoad(
  options: LoadOptions,
  onMoment: (moment: LoadMoment, answered: number) => void,
): Promise<LoadResult> {
  const tally = createTally();
  const template = createRequestTemplate(domain, options.descriptorKeys);
  let sequence = 0;
  const nextKey =
    options.keyOrder === 'sequence'
      ? () => sequence++ % options.distinctKeys
      : () => Math.floor(Math.random() * options.distinctKeys);
  const connections: LoadConnection[] = [];
  for (let index = 0; index < options.connections; index++) {
    const opened = await openConnection(options, (socket) => {
      const { tlsCa, hasTrace, streams, expected, ratePerSecond } = options;
      return new LoadConnection({
        socket,
        tally,
        template,
        isTls: tlsCa !== undefined,
        hasTrace,
        concurrency: streams,
        timeoutMs,
        expected,
        nextKey,
        isClosedLoop: ratePerSecond === undefined,
      });
    });
    connections.push(opened);
  }
  const overdueTimer = setInterval(() => {
    const nowMs = performance.now();
    for (const connection of connections) connection.endOverdue(nowMs);
  }, 100);

  const startMs = performance.now();
  for (const connection of connections) connection.isSending = true;
  let isPacing = false;
  if (options.ratePerSecond === undefined) {
    for (const connection of connections) {
      connection.pump();
      connection.flush();
    }
  } else {
    isPacing = true;
    pace(connections, options.ratePerSecond, startMs, () => isPacing);
  }

  const waitUntil = (ms: number) =>
    new Promise((resolve) => setTimeout(resolve, Math.max(startMs + ms - performance.now(), 0)));
  const addMoment = (moment: LoadMoment) => {
    const reading = {
      atMs: performance.now(),
      answered: tally.answered,
      serviceCpuUs: readCpuUs(options.pids),
    };
    onMoment(moment, reading.answered);
    return reading;
  };
  await waitUntil(options.warmUpMs);
  const before = addMoment('begin');
  for (const connection of connections) connection.measuredFromMs = before.atMs;
  await waitUntil(options.warmUpMs + options.measuredMs / 2);
  onMoment('half', tally.answered);
  await waitUntil(options.warmUpMs + options.measuredMs);
  const after = addMoment('end');

  isPacing = false;
  let unsent = 0;
  for (const connection of connections) {
    connection.isSending = false;
    unsent += connection.queued;
  }
  const drainedByMs = performance.now() + timeoutMs + 500;
  while (connections.some((connection) => connection.inFlight > 0)) {
    if (performance.now() > drainedByMs) break;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  clearInterval(overdueTimer);
  for (const connection of connections) connection.close();

  return {
    seconds: (after.atMs - before.atMs) / 1000,
    answered: after.answered - before.answered,
    serviceCpuUs: after.serviceCpuUs - before.serviceCpuUs,
    latencyUs: toPercentiles(tally.latency),
    sendLagUs: options.ratePerSecond === undefined ? undefined : toPercentiles(tally.sendLag),
    unsent,
    failures: Object.fromEntries(tally.failures),
  };
}

/** Assigns each request of an open loop to a connection when it is due. */
function pace(
  connections: readonly LoadConnection[],
  ratePerSecond: number,
  startMs: number,
  isPacing: () => boolean,
): void {
  sharpenPauses();
  const intervalMs = 1000 / ratePerSecond;
  let next = 0;
  const sendDue = (): void => {
    if (!isPacing()) return;
    const nowMs = performance.now();
    for (let count = 0; count < burst && startMs + next * intervalMs <= nowMs; count++) {
      connections[next % connections.length]?.enqueue(startMs + next * intervalMs);
      next++;
    }
    let awaited = 0;
    for (const connection of connections) {
      if (connection.queued > 0) {
        connection.pump();
        connection.flush();
      }
      awaited += connection.inFlight;
    }
    const dueInMs = startMs + next * intervalMs - performance.now();
    afterPause(awaited > 0 ? Math.min(dueInMs, pauseMs) : dueInMs, sendDue);
  };
  sendDue();
}

async function openConnection(
  { port, tlsCa }: LoadOptions,
  create: (socket: Socket) => LoadConnection,
): Promise<LoadConnection> {
  const host = '127.0.0.1';
  const signal = AbortSignal.timeout(connectTimeoutMs);
  let connection: LoadConnection | undefined;
  let socket: Socket;
  if (tlsCa === undefined) {
    const onread = {
      buffer: Buffer.allocUnsafe(inputLength),
      callback: (length: number, buffer: Uint8Array) => {
        connection?.receive(Buffer.from(buffer.buffer, buffer.byteOffset, length));
        return true;
      },
    };
    socket = connectTcp({ host, port, onread });
    await once(socket, 'connect', { signal });
  } else {
    socket = connectTls({ host, port, ca: tlsCa, ALPNProtocols: ['h2'] });
    await once(socket, 'secureConnect', { signal });
    socket.on('data', (chunk: Buffer) => connection?.receive(chunk));
  }
  socket.setNoDelay(true);
  connection = create(socket);
  await connection.ready;
  return connection;
}

function toPercentiles(histogram: Tally['latency']): Percentiles {
  return {
    p99: histogram.quantile(0.99),
    p999: histogram.quantile(0.999),
  };
}
