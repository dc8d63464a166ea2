import test from 'ava';
import { testLines } from '../../../test/support/reviewed-lines.ts';
import { type ControlPlaneMetrics, createControlPlaneMetrics } from './metrics.ts';
import type { Overview } from './overview.ts';

const served: Overview = {
  revisionInForceAtMs: 1_000,
  isStale: true,
  newest: { isValid: false, isHeldBack: false, errors: 2, warnings: 1 },
  domains: 1,
  isStoreReachable: false,
  storeSuccessAtMs: undefined,
  revisions: { accepted: 1, refused: 0, taken_back: 0 },
  rollout: undefined,
  isRecordShared: true,
  isForgetful: false,
  certificates: {},
  workers: { in_force: 0, pending: 0, refused: 0, gone: 0 },
};

/** The lines of the control plane's own metrics, without Node's. */
async function linesOf(metrics: ControlPlaneMetrics): Promise<string[]> {
  const { text } = await metrics.expose();
  const lines = text.split('\n').filter((line) => line.startsWith('ratelane_control_plane_'));
  return lines.map((line) => line.slice('ratelane_control_plane_'.length));
}

/** A line is `METHOD VALUE...`, of the metrics or their xDS part, and prints what is new; `state OVERVIEW` prints
 * everything. */
testLines(test, new URL('metrics.txt', import.meta.url), async (given) => {
  let overview = served;
  const metrics = createControlPlaneMetrics(() => overview);
  const methods: Readonly<Record<string, unknown>> = { ...metrics, ...metrics.xds };
  let before = new Set(await linesOf(metrics));
  for (const step of given.split('; ')) {
    const [verb = '', ...words] = step.split(' ');
    if (verb === 'state') {
      overview = JSON.parse(words.join(' '));
      await linesOf(metrics);
      before = new Set();
    } else {
      const method = methods[verb] as (...values: unknown[]) => void;
      method(...words.map((word) => (/^(?:\d+|true|false)$/.test(word) ? JSON.parse(word) : word)));
    }
  }
  return (await linesOf(metrics)).filter((line) => !before.has(line)).join('; ');
});

test('the process is shown under the names that all Prometheus clients use', async (t) => {
  const { text } = await createControlPlaneMetrics(() => served).expose();
  for (const name of [
    'process_cpu_seconds_total',
    'process_start_time_seconds',
    'process_resident_memory_bytes',
    'process_virtual_memory_bytes',
    'process_open_fds',
    'process_max_fds',
  ]) {
    t.regex(text, new RegExp(`^${name} \\d`, 'm'));
  }
});
