// A layer between ava and each test file; ava loads it first (package.json). A test file gets its own `test`, which
// prefixes titles with the file, starts a bounded number of tests at once, and reports for a failed test its position
// and the last output of the programs that it had started. If run-tests.ts requests it, loading the first file of a
// room loads the others too, so that one process runs all of them.
import { registerHooks } from 'node:module';
import { relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import ava, { type ExecutionContext, type TestFn } from 'ava';
import { collectPrograms } from '../support/programs-of-test.ts';
import { createSlots } from './slots.ts';
import { describeFailure } from './test-failure.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const { RATELANE_TEST_ROOMS, RATELANE_TESTS_AT_ONCE } = process.env;
// Programs that tests start do not need it.
delete process.env['RATELANE_TEST_ROOMS'];
/** All files of each room, by the file that ava knows. Paths are absolute. */
const rooms: Readonly<Record<string, readonly string[]>> = JSON.parse(RATELANE_TEST_ROOMS ?? '{}');
const slots = createSlots(Number(RATELANE_TESTS_AT_ONCE ?? 8));
/** The limit of one test; ava's own limit is on the silence of a process, and its message names no program. */
const testMs = 170_000;
/** For the teardown of a process' last test. */
const endMs = 30_000;
/** The number of tests that have not ended. */
let left = 0;
/** Marks the URL of a file that is loaded as itself. */
const own = '?own';
const scheme = 'test-of:';
const isTestFile = /\.test\.ts(?:\?own)?$/;
const hooks = Symbol.for('ratelane.tests');

/** Definitions that wait for the last file of a room: ava accepts no more tests once the first have begun. */
let held: (() => void)[] | undefined;

Object.assign(globalThis, { [hooks]: { createTest, hold, release } });
registerHooks({
  resolve(specifier, context, next) {
    const { parentURL = '' } = context;
    if (specifier !== 'ava' || !isTestFile.test(parentURL)) return next(specifier, context);
    return { url: `${scheme}${parentURL.replace(own, '')}`, format: 'module', shortCircuit: true };
  },
  load(url, context, next) {
    if (url.startsWith(scheme)) {
      const file = JSON.stringify(url.slice(scheme.length));
      return toModule(
        `export default globalThis[Symbol.for('${hooks.description}')].createTest(${file});`,
      );
    }
    const room = url.startsWith('file:') && !url.endsWith(own) && rooms[fileURLToPath(url)];
    if (!room) return next(url, context);
    const files = room.map((path) => pathToFileURL(path).href);
    return toModule(`
      const { hold, release } = globalThis[Symbol.for('${hooks.description}')];
      hold();
      ${files.map((href) => `await import('${href === url ? `${href}${own}` : href}');`).join('\n')}
      release();`);
  },
});

function toModule(source: string) {
  return { format: 'module', source, shortCircuit: true };
}

function hold(): void {
  held = [];
}

function release(): void {
  for (const declare of held ?? []) declare();
  held = undefined;
}

/** `test` for the file with this URL. */
function createTest(fileUrl: string): TestFn {
  const path = fileURLToPath(fileUrl);
  return wrap(ava, path, relative(root, path)) as TestFn;
}

// biome-ignore lint/suspicious/noExplicitAny: ava's chain has many call signatures, which are not read
type Chain = any;

/** `serial`, `skip`, `after.always` and the like return further chains. Without a prefix it is a hook's. */
function wrap(chain: Chain, path: string, prefix: string | undefined): Chain {
  return new Proxy(chain, {
    apply(target, self, args) {
      if (typeof args[0] === 'boolean') return wrap(target.apply(self, args), path, prefix);
      const declare = () =>
        target.apply(self, prefix === undefined ? args : toTest(args, path, prefix));
      if (held === undefined) declare();
      else held.push(declare);
    },
    get(target, name) {
      const value = target[name];
      if (typeof value !== 'function' || name === 'macro') return value;
      return wrap(value, path, /^(?:before|after)/.test(String(name)) ? undefined : prefix);
    },
  });
}

function toTest(args: readonly Chain[], path: string, prefix: string): unknown[] {
  const [title, implementation, ...rest] = args;
  left++;
  const run = (t: ExecutionContext, ...given: unknown[]) =>
    runTest(t, path, async () => implementation(t, ...given));
  return [`${prefix}: ${title}`, ...(implementation === undefined ? [] : [run]), ...rest];
}

async function runTest(t: ExecutionContext, path: string, body: () => Promise<unknown>) {
  await slots.acquire();
  const { programs, run } = collectPrograms();
  const late = Promise.withResolvers<never>();
  const end = (ms: number) =>
    setTimeout(() => late.reject(new Error(`the test did not end within ${ms / 1000} s`)), ms);
  let timer = end(testMs);
  const { timeout } = t;
  Object.defineProperty(t, 'timeout', {
    value: (ms: number, message?: string) => {
      clearTimeout(timer);
      timer = end(ms);
      timeout(ms, message);
    },
  });
  try {
    await Promise.race([run(body), late.promise]);
    if (!t.passed) t.log(describeFailure(undefined, path, root, programs));
  } catch (error) {
    t.log(describeFailure(error, path, root, programs));
    throw error;
  } finally {
    clearTimeout(timer);
    slots.give();
    if (--left === 0) setTimeout(endProcess, endMs, path).unref();
  }
}

/** Otherwise, a process that something keeps alive would be waited for as long as the longest silence that a test may
 * have. */
function endProcess(path: string): void {
  const open = process.getActiveResourcesInfo().join(', ');
  console.error(`${relative(root, path)}: the process does not end after its tests: ${open}`);
  process.exit(1);
}
