// Profiles this process while it serves: its CPU time by function, and its live objects by the code that allocated
// them.
import type { Profiler as CpuProfiler } from 'node:inspector';
import { Session } from 'node:inspector/promises';
import type { Clock } from '../../shared/clock.ts';
import { createProfileBuilder, type Frame } from './profile-builder.ts';

export interface Profiler {
  /** Samples for this long, or until `signal` aborts; resolves with the gzipped profile. */
  cpu(durationMs: number, signal: AbortSignal): Promise<ProfileResult>;
  /** Profiles objects allocated meanwhile that are still alive at the end. */
  heap(durationMs: number, signal: AbortSignal): Promise<ProfileResult>;
}

/** `busy`: another profile is being taken. `gone`: the process does not exist, or ended meanwhile. */
export type ProfileResult = Buffer | 'busy' | 'gone';

/** The profile as the engine returns it; the types of node:inspector lack `id` and `samples`. */
interface HeapProfile {
  readonly head: HeapNode;
  readonly samples: readonly { readonly nodeId: number }[];
}

interface HeapNode {
  readonly id: number;
  readonly callFrame: Frame;
  readonly selfSize: number;
  readonly children: readonly HeapNode[];
}

const cpuIntervalMicros = 1000;
const heapIntervalBytes = 32_768;

export function createProfiler({ clock }: { readonly clock: Clock }): Profiler {
  let isBusy = false;

  async function alone(run: (session: Session) => Promise<Buffer>): Promise<ProfileResult> {
    if (isBusy) return 'busy';
    isBusy = true;
    const session = new Session();
    try {
      session.connect();
      return await run(session);
    } finally {
      session.disconnect();
      isBusy = false;
    }
  }

  function wait(durationMs: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const finish = () => {
        cancel();
        signal.removeEventListener('abort', finish);
        resolve();
      };
      const cancel = clock.after(durationMs, finish);
      if (signal.aborted) finish();
      else signal.addEventListener('abort', finish);
    });
  }

  return {
    cpu: (durationMs, signal) =>
      alone(async (session) => {
        const startedAtMs = clock.wallMs();
        await session.post('Profiler.enable');
        await session.post('Profiler.setSamplingInterval', { interval: cpuIntervalMicros });
        await session.post('Profiler.start');
        await wait(durationMs, signal);
        const { profile } = await session.post('Profiler.stop');
        return encodeCpuProfile(profile, startedAtMs);
      }),
    heap: (durationMs, signal) =>
      alone(async (session) => {
        const startedAtMs = clock.wallMs();
        await session.post('HeapProfiler.startSampling', { samplingInterval: heapIntervalBytes });
        await wait(durationMs, signal);
        const { profile } = await session.post('HeapProfiler.stopSampling');
        const heap = profile as unknown as HeapProfile;
        return encodeHeapProfile(heap, startedAtMs, clock.wallMs() - startedAtMs);
      }),
  };
}

/** Idle time is not CPU time, and is omitted. */
function encodeCpuProfile(profile: CpuProfiler.Profile, startedAtMs: number): Promise<Buffer> {
  const builder = createProfileBuilder({
    measures: [
      { type: 'samples', unit: 'count' },
      { type: 'cpu', unit: 'nanoseconds' },
    ],
    period: cpuIntervalMicros * 1000,
    durationMs: (profile.endTime - profile.startTime) / 1000,
    startedAtMs,
  });
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  const parents = new Map<number, number>();
  for (const node of profile.nodes) {
    for (const child of node.children ?? []) parents.set(child, node.id);
  }
  const totals = new Map<number, { count: number; nanos: number }>();
  for (const [index, id] of (profile.samples ?? []).entries()) {
    const total = totals.get(id) ?? { count: 0, nanos: 0 };
    total.count += 1;
    total.nanos += Math.max(0, profile.timeDeltas?.[index] ?? 0) * 1000;
    totals.set(id, total);
  }
  for (const [leaf, { count, nanos }] of totals) {
    const stack: Frame[] = [];
    for (let id: number | undefined = leaf; id !== undefined; id = parents.get(id)) {
      const frame = nodes.get(id)?.callFrame;
      if (frame !== undefined && frame.functionName !== '(root)') stack.push(frame);
    }
    if (stack[0] !== undefined && stack[0].functionName !== '(idle)') {
      builder.add(stack, [count, nanos]);
    }
  }
  return builder.encode();
}

function encodeHeapProfile(
  profile: HeapProfile,
  startedAtMs: number,
  durationMs: number,
): Promise<Buffer> {
  const builder = createProfileBuilder({
    measures: [
      { type: 'inuse_objects', unit: 'count' },
      { type: 'inuse_space', unit: 'bytes' },
    ],
    period: heapIntervalBytes,
    durationMs,
    startedAtMs,
  });
  const objects = new Map<number, number>();
  for (const { nodeId } of profile.samples) objects.set(nodeId, (objects.get(nodeId) ?? 0) + 1);
  const open: { node: HeapNode; callers: Frame[] }[] = [{ node: profile.head, callers: [] }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { node, callers } = next;
    const isRoot = node.callFrame.functionName === '(root)';
    const stack = isRoot ? callers : [node.callFrame, ...callers];
    if (node.selfSize > 0 && stack.length > 0) {
      builder.add(stack, [objects.get(node.id) ?? 0, node.selfSize]);
    }
    for (const child of node.children) open.push({ node: child, callers: stack });
  }
  return builder.encode();
}
