import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { constants, getPriority } from 'node:os';
import { Worker } from 'node:worker_threads';
import test, { type ExecutionContext } from 'ava';
import { parseRuleDocument } from '../../shared/rules/document/document.ts';
import type { RuleDocument } from '../../shared/rules/rule-document.ts';
import { loadProtos } from '../../shared/wire/protos.ts';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { readThreads } from '../../test/support/threads.ts';
import { parseResource } from './parsed-resource.ts';
import { createParsingThread, isLargeText } from './parsing-thread.ts';

const fixtures = new URL('../../test/fixtures/rules/', import.meta.url);
const thread = new URL('parsing-thread-main.ts', import.meta.url);

/** With `startWorker` undefined the real thread is used. */
function createThread(t: ExecutionContext, startWorker = () => new Worker(thread)) {
  const log = createRecordedLog();
  const clock = createManualClock();
  const started: Worker[] = [];
  const parsing = createParsingThread({
    log,
    clock,
    startWorker() {
      const worker = startWorker();
      started.push(worker);
      return worker;
    },
  });
  t.teardown(() => parsing.close());
  return { ...parsing, log, clock, started };
}

const small = `domain: d
descriptors:
  - {key: k, rate_limit: {unit: second, requests_per_unit: 0}}
`;

for (const folder of ['good', 'warned', 'bad']) {
  test(`documents of ${folder} have the same problems in the thread as in this one`, async (t) => {
    const { parse, started } = createThread(t);
    const names = readdirSync(new URL(folder, fixtures)).filter((name) => name.endsWith('.yaml'));
    t.true(names.length > 3);
    for (const name of names) {
      const text = readFileSync(new URL(`${folder}/${name}`, fixtures), 'utf8');
      t.deepEqual(await parse(text, name), parseRuleDocument(text, name), name);
    }
    t.is(started.length, 1);
  });
}

test('a resource has the same rules and problems from the thread as from this one', async (t) => {
  const { parseResource: parse, started, log } = createThread(t);
  const { deserialize, serialize } = loadProtos().rateLimitConfig;
  const rateLimit = { unit: 1, requestsPerUnit: 3 };
  const descriptors = Array.from({ length: 1_000 }, (_, at) => ({ key: `k${at}`, rateLimit }));
  for (const bytes of [
    serialize({ name: 'n', domain: 'd', descriptors }),
    serialize({ name: 'n', domain: '', descriptors: [{ key: '' }] }),
    Buffer.from([0x0f]),
  ]) {
    t.deepEqual(await parse(bytes, 'resource 1', deserialize), parseResource(bytes, deserialize));
  }
  t.is(started.length, 1);
  t.deepEqual(log.lines, []);
});

test('each message to the thread has one part of a large resource, and nothing of the rest', async (t) => {
  // Answers with the largest number of bytes in any message.
  const program = `const { parentPort, receiveMessageOnPort } = require("worker_threads");
    parentPort.on("message", ({ pieces }) => {
      let most = 0;
      for (let got = receiveMessageOnPort(pieces); got; got = receiveMessageOnPort(pieces)) {
        const { bytes } = got.message;
        if (bytes) most = Math.max(most, bytes.buffer.byteLength);
      }
      pieces.postMessage({ problems: [], hasDocument: false, undecodable: String(most) });
      parentPort.postMessage("done");
    });`;
  const { parseResource: parse } = createThread(t, () => new Worker(program, { eval: true }));
  const { deserialize } = loadProtos().rateLimitConfig;
  // A part of a larger buffer, as in the message of a management server.
  const bytes = Buffer.alloc(3_000_000).subarray(5, 2_900_000);
  const answer = await parse(bytes, 'resource 1', deserialize);
  t.deepEqual(answer, { ok: false, message: String(256 * 1024) });
});

test('unchanged descriptors stay the same objects, however the document was parsed before', async (t) => {
  const { parse, parseResource: parseBytes } = createThread(t);
  const { deserialize, serialize } = loadProtos().rateLimitConfig;
  const limits = (changed: number) =>
    Array.from({ length: 1_000 }, (_, at) => (at === 500 ? changed : 1));
  const textOf = (changed: number) =>
    ['domain: d', 'descriptors:']
      .concat(
        limits(changed).map(
          (limit, at) =>
            `  - {key: k, value: v${at}, rate_limit: {unit: second, requests_per_unit: ${limit}}}`,
        ),
      )
      .join('\n');
  const bytesOf = (changed: number) =>
    serialize({
      ...{ name: 'n', domain: 'd' },
      descriptors: limits(changed).map((requestsPerUnit, at) => ({
        key: 'k',
        value: `v${at}`,
        rateLimit: { unit: 1, requestsPerUnit },
      })),
    });
  type Ask = (changed: number, before?: RuleDocument) => Promise<RuleDocument | undefined>;
  const asked: readonly [Ask, RuleDocument | undefined][] = [
    [
      async (changed, before) => (await parse(textOf(changed), 'f.yaml', before)).document,
      parseRuleDocument(textOf(1), 'f.yaml').document,
    ],
    [
      async (changed, before) => {
        const parsed = await parseBytes(bytesOf(changed), 'r', deserialize, before);
        return parsed.ok ? parsed.document : undefined;
      },
      undefined,
    ],
  ];
  for (const [ask, given] of asked) {
    const first = given ?? (await ask(1));
    let last = first;
    for (const changed of [2, 3]) {
      const next = await ask(changed, last);
      t.deepEqual(next, await ask(changed));
      const restarted =
        next?.descriptors.filter((each, at) => each !== last?.descriptors[at]) ?? [];
      t.true(restarted.length <= 100, `${restarted.length}`);
      t.true(restarted.some(({ rateLimit }) => rateLimit?.requestsPerUnit === changed));
      last = next;
    }
  }
});

test('when the thread for a resource fails, the resource is parsed in this thread', async (t) => {
  const { parseResource: parse, log } = createThread(t, () => {
    throw new Error('no more threads');
  });
  const { deserialize, serialize } = loadProtos().rateLimitConfig;
  const bytes = serialize({ name: 'n', domain: 'd', descriptors: [] });
  const parsed = await parse(bytes, 'resource 2 of the response', deserialize);
  t.deepEqual(parsed, parseResource(bytes, deserialize));
  t.regex(log.lines[0] ?? '', /^warning resource 2 of the response is large .*no more threads$/);
});

test('an idle thread ends, and the next document starts it again', async (t) => {
  const { parse, clock, started } = createThread(t);
  await parse(small, 'a.yaml');
  clock.advance(9_000);
  await parse(small, 'b.yaml');
  clock.advance(9_000);
  t.is(started.length, 1);
  const ended = once(started[0] as Worker, 'exit');
  clock.advance(1_000);
  await ended;
  t.is(clock.pending, 0);
  await parse(small, 'c.yaml');
  t.is(started.length, 2);
});

for (const [what, program, reason] of [
  ['ends', 'process.exit(3)', 'it ended with code 3'],
  ['throws', 'throw new Error("lost")', 'lost'],
  [
    'ends in the midst of a document',
    'require("worker_threads").parentPort.on("message", ({ pieces }) => { pieces.postMessage({ problems: [], hasDocument: true }); process.exit(3); })',
    'it ended with code 3',
  ],
  [
    'sends less than a document',
    'const { parentPort } = require("worker_threads"); parentPort.on("message", ({ pieces }) => { pieces.postMessage({ problems: [], hasDocument: true }); parentPort.postMessage("done"); })',
    'a piece of a document is missing',
  ],
] as const) {
  test(`when the thread ${what}, the document is parsed in this thread, which is logged`, async (t) => {
    const { parse, log } = createThread(t, () => new Worker(program, { eval: true }));
    t.deepEqual(await parse(small, 'a.yaml'), parseRuleDocument(small, 'a.yaml'));
    t.deepEqual(log.lines, [
      `warning a.yaml is large and blocks decisions while it is read, as the thread for it failed: ${reason}`,
    ]);
  });
}

test('the thread lowers its own priority, and no other thread of the process', async (t) => {
  const { parse } = createThread(t);
  const before = getPriority();
  await parse(small, 'a.yaml');
  t.is(getPriority(), before);
  // If all threads have the lowest priority already, as under `nice`, no priority can be lowered.
  if (process.platform !== 'linux' || before >= constants.priority.PRIORITY_BELOW_NORMAL) return;
  const priorities = (await readThreads(process.pid, 'stat')).map((stat) =>
    // The 19th field, counted after the name in brackets, which may contain spaces.
    Number(stat.split(') ')[1]?.split(' ')[16]),
  );
  t.true(priorities.some((priority) => priority > before));
});

test('when no thread can be started, the document is parsed in this thread', async (t) => {
  const { parse, log } = createThread(t, () => {
    throw new Error('no more threads');
  });
  t.deepEqual(await parse(small, 'a.yaml'), parseRuleDocument(small, 'a.yaml'));
  t.regex(log.lines[0] ?? '', /failed: no more threads$/);
});

test('a thread that died is replaced for the next document', async (t) => {
  let isFirst = true;
  const { parse, log, started } = createThread(t, () => {
    const worker = isFirst ? new Worker('process.exit(3)', { eval: true }) : new Worker(thread);
    isFirst = false;
    return worker;
  });
  await parse(small, 'a.yaml');
  t.deepEqual(await parse(small, 'b.yaml'), parseRuleDocument(small, 'b.yaml'));
  t.is(started.length, 2);
  t.is(log.lines.length, 1);
});

const endless = 'require("worker_threads").parentPort.on("message", () => { for (;;); })';

test('a document that takes too long is refused, and the thread is ended', async (t) => {
  const { parse, clock, started } = createThread(t, () => new Worker(endless, { eval: true }));
  const parsed = parse(small, 'a.yaml');
  const ended = once(started[0] as Worker, 'exit');
  clock.advance(1_200_000);
  const { document, problems } = await parsed;
  t.is(document, undefined);
  t.deepEqual(
    problems.map(({ rule, file, message }) => [rule, file, message]),
    [['too-large', 'a.yaml', 'the document takes more than 120 s to read']],
  );
  await ended;
});

test('a document that needs too much memory is refused, and this process continues', async (t) => {
  const program =
    'require("worker_threads").parentPort.on("message", () => { const all = []; for (;;) all.push([...all]); })';
  const resourceLimits = { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 2 };
  const { parse } = createThread(t, () => new Worker(program, { eval: true, resourceLimits }));
  const { document, problems } = await parse(small, 'a.yaml');
  t.is(document, undefined);
  t.is(problems[0]?.message, 'the document needs more memory than there is');
});

test('a thread that is closed while it parses stops at once, and nothing is left', async (t) => {
  const { parse, close, clock, log, started } = createThread(
    t,
    () => new Worker(endless, { eval: true }),
  );
  const refused = t.throwsAsync(parse(small, 'a.yaml'), {
    message: 'closed while a job was running',
  });
  const ended = once(started[0] as Worker, 'exit');
  await close();
  await refused;
  await ended;
  await t.throwsAsync(parse(small, 'b.yaml'));
  t.is(started.length, 1);
  t.is(clock.pending, 0);
  t.deepEqual(log.lines, []);
});

test('a short text that the YAML library reads is large', (t) => {
  for (const each of ['a: &b c', 'a: |\n  b\n', 'a: [']) t.true(isLargeText(each), each);
  t.false(isLargeText('a: b'));
});
