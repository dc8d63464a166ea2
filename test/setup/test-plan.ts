// The tests of a run, which of them share a process, which may run at once, and what must be installed for them.
import { globSync } from 'node:fs';
import { dirname, matchesGlob } from 'node:path/posix';
import { createNeedsReader, type TestNeeds } from './test-needs.ts';

/** `quick` is what `npm test` runs; `rest` is what only `npm run test:all` and CI run as well. */
export type Part = 'quick' | 'rest';

export interface TestFile {
  /** Relative to the project's folder. */
  readonly path: string;
  readonly needs: TestNeeds;
}

export interface Lane {
  readonly name: string;
  /** The files of a room share a process. */
  readonly rooms: readonly (readonly TestFile[])[];
  /** Processes at once. */
  readonly processes: number;
  /** Tests of a process at once. */
  readonly testsAtOnce: number;
}

/** Lanes that run beside each other. The next stage begins when all of them have ended. */
export interface Stage {
  readonly lanes: readonly Lane[];
  /** Whether it needs more than `npm test` installs. */
  readonly needsTools: boolean;
}

/** The part of `test/` that `npm test` runs; the tests beside the sources belong to it as well. */
const quickSuites = [
  'test/bench/',
  'test/conformance/routing/',
  'test/contract/',
  'test/e2e/start.test.ts',
  'test/feature/',
  'test/setup/',
  'test/support/',
];

/** These start servers and programs, and mostly wait for them: each file has its own process, and more of them run at
 * once than there are processors. All others share a process with their folder. */
const serverSuites = [
  'control-plane/server/store/',
  'test/conformance/',
  'test/console/',
  'test/conformance/routing/',
  'test/contract/',
  'test/docs/',
  'test/e2e/',
  'test/faults/',
  'test/feature/',
  'test/fuzz/',
  'test/http2/',
];

/** These break something for seconds and measure waits: they are mostly idle, so that they run beside others. */
const outages = [
  'test/feature/output/tracing-stalled.test.ts',
  'test/feature/store/failure-latency.test.ts',
];

/** These measure waits of others or held memory: tests beside them would be measured too. */
const measuring = ['test/fuzz/bounds.test.ts', 'test/http2/attacks.test.ts'];

/** Its subfolders are separate rooms. */
const largest = 'control-plane/server/';

/** Unit tests that need their own process, with the reason. */
const apart: Readonly<Record<string, string>> = {
  'control-plane/server/record/peers/peers.test.ts': 'it measures the heap of its process',
  'control-plane/server/xds/workers.test.ts': 'it measures the heap of its process',
};

/**
 * @param root the project's folder
 * @param patterns files, folders or globs below it; where there are any, all parts are meant
 */
export function planTests(
  root: string,
  patterns: readonly string[],
  parts: readonly Part[],
): Stage[] {
  const wanted = patterns.map((pattern) => pattern.replace(/^\.\//, '').replace(/\/$/, ''));
  const readNeeds = createNeedsReader(root);
  const files = globSync('{shared,worker,control-plane,test}/**/*.test.ts', { cwd: root })
    .map((path) => path.replaceAll('\\', '/'))
    .sort()
    .filter((path) => wanted.length === 0 || wanted.some((pattern) => isBelow(path, pattern)))
    .map((path) => ({ path, needs: readNeeds(path) }))
    .filter((file) => wanted.length > 0 || parts.includes(partOf(file)));
  const of = (kind: Kind, part?: Part, needsTools?: boolean) =>
    files.filter(
      (file) =>
        kindOf(file.path) === kind &&
        (part === undefined || partOf(file) === part) &&
        (needsTools === undefined || file.needs.areMany === needsTools),
    );
  const one = (file: TestFile) => [file];
  const stages: Lane[][] = [
    [{ name: 'unit tests', rooms: toRooms(of('unit')), processes: 2, testsAtOnce: 4 }],
    [
      {
        name: 'tests with servers',
        rooms: of('server', 'quick').map(one),
        processes: 6,
        testsAtOnce: 4,
      },
    ],
    [
      {
        name: 'whole programs',
        rooms: of('server', 'rest', false).map(one),
        processes: 4,
        testsAtOnce: 4,
      },
      { name: 'outages', rooms: of('outage').map(one), processes: 3, testsAtOnce: 4 },
    ],
    [
      {
        name: 'with tools',
        rooms: of('server', 'rest', true).map(one),
        processes: 4,
        testsAtOnce: 4,
      },
    ],
    [{ name: 'alone', rooms: of('measuring').map(one), processes: 1, testsAtOnce: 1 }],
  ];
  return stages
    .map((lanes) => lanes.filter(({ rooms }) => rooms.length > 0))
    .filter((lanes) => lanes.length > 0)
    .map((lanes) => ({
      lanes,
      needsTools: lanes.some(({ rooms }) => rooms.flat().some(({ needs }) => needs.areMany)),
    }));
}

type Kind = 'unit' | 'server' | 'outage' | 'measuring';

function kindOf(path: string): Kind {
  if (measuring.includes(path)) return 'measuring';
  if (outages.includes(path)) return 'outage';
  return serverSuites.some((suite) => path.startsWith(suite)) ? 'server' : 'unit';
}

function partOf({ path, needs }: TestFile): Part {
  const kind = kindOf(path);
  if (needs.areMany || kind === 'outage' || kind === 'measuring') return 'rest';
  const isQuick = !path.startsWith('test/') || quickSuites.some((suite) => path.startsWith(suite));
  return isQuick ? 'quick' : 'rest';
}

/** A room for each folder of a program, with all that is below it: `worker/counters`, `shared`. */
function toRooms(files: readonly TestFile[]): TestFile[][] {
  const rooms = Map.groupBy(files, ({ path }) =>
    path in apart
      ? path
      : dirname(path)
          .split('/')
          .slice(0, path.startsWith(largest) ? 3 : 2)
          .join('/'),
  );
  return [...rooms.values()];
}

function isBelow(path: string, pattern: string): boolean {
  return path === pattern || path.startsWith(`${pattern}/`) || matchesGlob(path, pattern);
}
