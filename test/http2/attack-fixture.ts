// Shared by attacks on the HTTP/2 engine: a server with a manual clock, an innocent caller on another connection who
// must always be served, and the table of measurements.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { ExecutionContext, TestFn } from 'ava';
import type { GrpcMethod } from '../../worker/grpc/method.ts';
import type { GrpcTransportOptions } from '../../worker/grpc/transport.ts';
import { echo, recordCalls, startTransport } from '../contract/grpc-transport-fixture.ts';
import { cpuMs } from '../support/cpu-time.ts';
import { type Frame, flags, frameTypes, toPing } from '../support/http2-frames.ts';
import { createHttp2Peer, type Http2Peer } from '../support/http2-peer.ts';
import { createManualClock, type ManualClock } from '../support/manual-clock.ts';

export interface Attacked {
  readonly clock: ManualClock;
  /** A connection that has exchanged SETTINGS. */
  connectPeer(settings?: Readonly<Record<number, number>>): Promise<Http2Peer>;
  /** A connection that has sent nothing yet. */
  connectSilent(): Promise<Http2Peer>;
  /** The number of calls to `/attacked`, and a way to answer them. */
  readonly calls: { readonly replies: (() => void)[]; gone: number };
}

export interface AttackOptions {
  readonly methods?: Record<string, GrpcMethod>;
  readonly transport?: Partial<GrpcTransportOptions>;
}

/** The result of the attack, for the table. */
export type RunAttack = (t: ExecutionContext, attacked: Attacked) => Promise<string>;

/** Processor time, since others may load a small machine; an unbounded attack would take more. */
const longestWorkMs = 2000;
/** Wall time: long enough for a machine that stalls, too short for a caller who is not served. */
const longestWaitMs = 20_000;
const innocentPath = '/test.Echo/Echo';

/** Defines attacks as tests, and prints the table of their outcomes after the last. */
export function defineAttacks(test: TestFn) {
  const rows: [title: string, outcome: string, mostWorkMs: number, longestMs: number][] = [];
  test.after.always(() => {
    const width = Math.max(...rows.map(([title]) => title.length));
    const lines = rows
      .sort(([left], [right]) => left.localeCompare(right))
      .map(([title, outcome, mostWorkMs, longestMs]) => {
        const waited = `${longestMs.toFixed(0)} ms at most, for ${mostWorkMs.toFixed(0)} ms of work`;
        return `${title.padEnd(width)} | ${outcome} | others waited ${waited}`;
      });
    process.stderr.write(`${lines.join('\n')}\n`);
  });
  return (title: string, run: RunAttack, { methods, transport }: AttackOptions = {}) => {
    test.serial(title, async (t) => {
      const clock = createManualClock();
      const calls = recordCalls();
      const { connect, connectPeer, address } = await startTransport(
        t,
        { [innocentPath]: echo, '/attacked': calls.method, ...methods },
        transport,
        clock,
      );
      const connectSilent = async () => {
        const peer = await createHttp2Peer({ port: address.port });
        t.teardown(peer.close);
        return peer;
      };
      const innocent = await connect();
      let isOver = false;
      let longestMs = 0;
      let mostWorkMs = 0;
      const serve = async () => {
        for (let index = 0; !isOver || index < 3; index++) {
          const startMs = performance.now();
          const startWorkMs = cpuMs();
          const answer = await innocent.call(innocentPath, Buffer.of(index % 256));
          if (answer.grpcStatus !== 0) throw new Error(`an innocent call failed: ${answer.text}`);
          mostWorkMs = Math.max(mostWorkMs, cpuMs() - startWorkMs);
          longestMs = Math.max(longestMs, performance.now() - startMs);
          await new Promise(setImmediate);
        }
      };
      const served = serve();
      served.catch(() => {});
      let outcome: string;
      try {
        outcome = await run(t, { clock, calls, connectSilent, connectPeer });
      } finally {
        isOver = true;
      }
      await served;
      t.true(mostWorkMs < longestWorkMs, `an innocent caller waited for ${mostWorkMs} ms of work`);
      t.true(longestMs < longestWaitMs, `an innocent caller waited ${longestMs} ms`);
      t.log(outcome);
      rows.push([title, outcome, mostWorkMs, longestMs]);
    });
  };
}

let settled = 0;

/** Resolves when the server has processed everything sent before, or has disconnected. Costs it a PING. */
export async function settle(peer: Http2Peer): Promise<void> {
  const text = String(settled++).padStart(8, '-');
  peer.send(toPing(flags.none, text));
  const isPong = ({ type, payload }: Frame) => type === frameTypes.ping && `${payload}` === text;
  await peer.frame('PONG', isPong).catch((error: unknown) => {
    if (!peer.isEnded) throw error;
  });
}

/** Sends `first` frames at once, which must be tolerated, then `step` at a time until the connection is ended, which
 * must happen after at most `most`. Resolves with their number, including the PINGs used to check. */
export async function flood(
  t: ExecutionContext,
  peer: Http2Peer,
  frame: (index: number) => Buffer,
  { first, step, most }: { readonly first: number; readonly step: number; readonly most: number },
): Promise<number> {
  let sent = 0;
  const send = async (count: number) => {
    const frames = Array.from({ length: count }, (_, index) => frame(sent + index));
    await peer.sendAll(Buffer.concat(frames));
    await settle(peer);
    sent += count + 1;
  };
  await send(first);
  t.false(peer.isEnded, `ended after fewer than ${sent} frames`);
  while (!peer.isEnded && sent < most) await send(step);
  t.true(peer.isEnded, `not ended after ${sent} frames`);
  return sent;
}

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** Advances time in steps of a second, with the sockets' work in between. */
export async function passTime(clock: ManualClock, ms: number): Promise<void> {
  for (let passedMs = 0; passedMs < ms; passedMs += 1000) {
    clock.advance(Math.min(1000, ms - passedMs));
    await new Promise(setImmediate);
  }
}

/** Bytes of buffers that are really held. */
export async function residentBytes(): Promise<number> {
  // Memory is released some turns after a collection, which may allow further releases.
  for (let round = 0; round < 3; round++) {
    collectGarbage();
    await new Promise(setImmediate);
  }
  return process.memoryUsage().arrayBuffers;
}
