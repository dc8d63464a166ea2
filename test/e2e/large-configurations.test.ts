// Large inputs of the worst kind, up to the largest allowed size, while workers and probes are served: through each
// route that takes long, and with each poll of a store.
import { once } from 'node:events';
import { get } from 'node:http';
import { connect } from 'node:http2';
import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { createControlPlaneProcess } from '../support/control-plane-process.ts';
import { eventually } from '../support/eventually.ts';
import { createGitRepository } from '../support/git-repository.ts';
import { createRulesFolder } from '../support/rules-folder.ts';

const meter = new URL('../support/slice-meter.ts', import.meta.url);
/** The largest document that is allowed has 4 MiB, which takes seven minutes of processor time: LARGE_MIB=4. */
const mebibytes = Number(process.env['LARGE_MIB'] ?? 1);
/** Of the thread's own time, including garbage collection. A slice should take 20 ms; 1 to 9 are usual, and on a busy
 * machine one in a hundred took 22. If other programs share its core, it may take longer, in proportion to a reference
 * task that takes 4 ms. Before there were slices, inputs of 4 MiB took 60 to 1,300. */
const longestMs = 30;
const mostTimesSame = 8;
/** In characters, somewhat below the limit of a document. */
const most = mebibytes * 1024 * 1024 - 4_096;
const examinedMs = 180_000;

const limit = 'rate_limit: {unit: minute, requests_per_unit: 5}';
const rule = (at: number, amount: number) =>
  `  - key: user\n    value: customer-${at}\n    rate_limit: {unit: minute, requests_per_unit: ${amount}}\n`;
const head = `domain: shop\ndescriptors:\n${rule(0, 5)}`;

/** As many rules as fit. */
function fill(start: string, toRule: (at: number) => string, characters = most): string {
  const parts = [start];
  let length = start.length;
  for (let at = 0; length < characters; at++) {
    const part = toRule(at);
    length += part.length;
    parts.push(part);
  }
  return parts.slice(0, -1).join('');
}

const rulesOf = (amount: number, domain = 'shop', characters = most) =>
  fill(`domain: ${domain}\ndescriptors:\n`, (at) => rule(at, amount), characters);

/** As many rules as fit into the allowed number of parts. */
const fillParts = (start: string, toRule: (at: number) => string) =>
  fill(start, toRule, (most * 3) / 4);

/** Valid documents that take longer than others. */
const unusual: Readonly<Record<string, () => string>> = {
  'rules on one line': () =>
    `${fillParts('domain: shop\ndescriptors: [', (at) => `{key: k${at}, ${limit}}, `)}]\n`,
  aliases: () => {
    const anchored = limit.replace('{', '&r {');
    return fillParts(
      `${head}  - {key: k, ${anchored}}\n`,
      (at) => `  - {key: k${at}, rate_limit: *r}\n`,
    );
  },
  'rules deep below others': () => {
    const below = `${'descriptors: [{key: k, '.repeat(30)}${limit}${'}]'.repeat(30)}`;
    return fillParts(head, (at) => `  - {key: k${at}, ${below}}\n`);
  },
  'rules that end': () => {
    const until = (at: number) => new Date(Date.now() + 86_400_000 + at * 1_000).toISOString();
    return fillParts(head, (at) => `  - {key: k${at}, until: ${until(at)}, ${limit}}\n`);
  },
  wildcards: () => fillParts(head, (at) => `  - {key: k, value: 'a${at}*', ${limit}}\n`),
  warnings: () => fillParts(head, (at) => `  - {key: k${at}, value: 'a|b', ${limit}}\n`),
};

const refused: Readonly<Record<string, () => string>> = {
  'nothing but aliases': () => '- *a\n'.repeat(most / 5),
  'nothing but brackets': () => '['.repeat(most),
  'nothing but mistakes': () =>
    `domain: shop\ndescriptors:\n${'  - kee: 1\n'.repeat(most / 11 - 5)}`,
  'one rule again and again': () => {
    const same = `  - {key: k, ${limit}}\n`;
    return `domain: shop\ndescriptors:\n${same.repeat(most / same.length - 1)}`;
  },
};

const manyFiles = () =>
  Array.from({ length: 9_000 }, (_, at) => ({
    path: `f${at}.yaml`,
    text: rulesOf(1, `d${at}`, 400),
  }));

const stores = {
  directory(t: ExecutionContext) {
    const rules = createRulesFolder(t);
    return { write: rules.replace, flags: ['--config-dir', rules.path] };
  },
  Git(t: ExecutionContext) {
    const { push, git, url } = createGitRepository(t);
    const write = (name: string, text: string) => {
      git('pull', '--quiet', '--rebase', 'origin', 'main');
      push({ [name]: text });
    };
    return { write, flags: ['--git', url, '--git-ref', 'main', '--git-poll', '1s'] };
  },
} as const;

/** A control plane on a store; meanwhile, its health is requested and clients connect to its xDS port all the time. */
async function startMeasured(t: ExecutionContext, kind: keyof typeof stores) {
  t.timeout(900_000);
  const { write, flags } = stores[kind](t);
  write('small.yaml', rulesOf(1, 'small', 200));
  const plane = await createControlPlaneProcess(t, {
    flags: [...flags, '--allow-removal', '--max-response-bytes', '64000000'],
    env: { NODE_OPTIONS: `--import=${meter.href} --max-semi-space-size=4` },
  });
  await plane.start();
  const logged = () => [
    ...plane.output().matchAll(/longest slice: ([\d.]+) ms, the same work: ([\d.]+) ms/g),
  ];
  async function measureLongest(): Promise<{ readonly ms: number; readonly sameMs: number }> {
    const before = logged().length;
    plane.signal('SIGUSR2');
    await eventually('the meter logs', () => logged().length > before);
    const [, ms, sameMs] = logged().at(-1) ?? [];
    return { ms: Number(ms), sameMs: Number(sameMs) };
  }
  let isOver = false;
  const answered = { probes: 0, connections: 0 };
  async function repeat(name: keyof typeof answered, ask: () => Promise<void>): Promise<void> {
    for (; !isOver; answered[name]++) {
      await ask();
      await sleep(20);
    }
  }
  const asking = Promise.all([
    repeat('probes', async () => {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      get(`${plane.adminUrl}/healthcheck`, (answer) => {
        t.is(answer.statusCode, 200);
        answer.resume().once('end', resolve);
      }).once('error', reject);
      await promise;
    }),
    repeat('connections', async () => {
      const session = connect(`http://${plane.xdsAddress}`);
      await once(session, 'remoteSettings');
      session.close();
    }),
  ]);
  /** Like plane.fetch, with a longer deadline: a large change takes time if other programs share the processor. */
  async function ask(path: string, init?: RequestInit) {
    const signal = AbortSignal.timeout(examinedMs);
    const answer = await fetch(`${plane.adminUrl}${path}`, { ...init, signal });
    return { status: answer.status, body: JSON.parse(await answer.text()) };
  }
  const inForce = () => plane.output().split(' is in force').length;
  return {
    write,
    ask,
    post: (path: string, body: object, method = 'POST', headers = {}) =>
      ask(path, {
        method,
        body: JSON.stringify(body),
        headers: { 'content-type': 'application/json', ...headers },
      }),
    /** Resolves when another revision is in force. */
    async untilServed(change: () => unknown): Promise<void> {
      const before = inForce();
      await change();
      await eventually('it is in force', () => inForce() > before, examinedMs);
    },
    async untilRefused(change: () => unknown): Promise<void> {
      const before = plane.output().split(' is not served').length;
      await change();
      const isRefused = () => plane.output().split(' is not served').length > before;
      await eventually('it is refused', isRefused, examinedMs);
    },
    async measure(what: string, act: () => Promise<unknown>): Promise<void> {
      const start = await measureLongest();
      const before = { ...answered };
      await act();
      const { ms, sameMs } = await measureLongest();
      const mostMs = Math.max(longestMs, mostTimesSame * Math.max(start.sameMs, sameMs));
      t.log(`${what}: ${ms} ms`);
      t.true(ms <= mostMs, `${what}: ${ms} ms of at most ${mostMs}`);
      await eventually(
        `others are served: ${what}`,
        () => answered.probes > before.probes && answered.connections > before.connections,
      );
    },
    async end(): Promise<void> {
      isOver = true;
      await asking;
    },
  };
}

const counted = { domain: 'shop', descriptors: [[{ key: 'user', value: 'customer-7' }]] };

test.serial("a request's content is examined while other requests are served", async (t) => {
  const { post, ask, measure, end } = await startMeasured(t, 'directory');
  const small = manyFiles();
  const wrong = small
    .slice(0, 3_000)
    .map(({ path }) => ({ path, text: `domain: d\ndescriptors:\n${'  - kee: 1\n'.repeat(100)}` }));
  const bodies = {
    'one document': { yaml: rulesOf(5) },
    'many files': { files: small },
    'files with many mistakes': { files: wrong },
    ...Object.fromEntries(Object.entries(refused).map(([what, make]) => [what, { yaml: make() }])),
  };
  for (const [what, body] of Object.entries(bodies))
    await measure(what, async () => t.is((await post('/validations', body)).status, 200));
  await measure('a document as YAML', () =>
    ask('/validations', {
      method: 'POST',
      body: rulesOf(5),
      headers: { 'content-type': 'application/yaml' },
    }),
  );
  await end();
});

test.serial('a large configuration is read and changed while others are served', async (t) => {
  const { write, untilServed, post, ask, measure, end } = await startMeasured(t, 'directory');
  const isDone = async (asked: ReturnType<typeof post>) => {
    const { status, body } = await asked;
    t.true(status < 300, JSON.stringify(body).slice(0, 300));
    return body;
  };
  await measure('a write', () => untilServed(() => write('shop.yaml', rulesOf(5))));
  const { revisions } = await isDone(ask('/revisions'));
  const [{ id }] = revisions;
  for (const path of [
    ...['/status?look=true', '/rules', '/rules/shop?search=r-77', '/rules/shop?limit=5000'],
    ...['/finds?text=r-77', '/domains', '/domains/shop?rule=shop.user_customer-7'],
    ...[`/revisions/${id}`, '/sources?rule=shop.user_customer-7'],
    ...['/sources/changes?rule=shop.user_customer-7', '/traffic/rules?domain=shop', '/top'],
  ]) {
    await measure(path, () => isDone(ask(path)));
  }
  await measure('explanations', () => isDone(post('/explanations', counted)));
  await measure('effects', () => isDone(post('/effects', { domain: 'shop', yaml: rulesOf(6) })));
  await measure('what a push would change', async () => {
    const files = [{ path: 'shop.yaml', text: rulesOf(6) }];
    await isDone(post('/revisions/diff', { files }));
  });
  await measure('a domain is put', () =>
    untilServed(async () => {
      const headers = { 'if-match': '*' };
      await isDone(post('/domains/shop', { yaml: rulesOf(7) }, 'PUT', headers));
    }),
  );
  const lift = (more: object) => isDone(post('/lifts', { ...counted, ...more, reason: 'a test' }));
  await measure('a lift', () => untilServed(() => lift({ for: '1h' })));
  await measure('the end of a lift', () => untilServed(() => lift({ end: true })));
  await measure('the changes between revisions', async () => {
    const { revisions: all } = await isDone(ask('/revisions'));
    await isDone(ask(`/revisions/diff?from=${id}&to=${all[0].id}`));
  });
  await measure('a rollback', () =>
    untilServed(() => isDone(post('/rollbacks', { revision: id, message: 'a test' }))),
  );
  await end();
});

test.serial('a poll of any kind of rules completes while others are served', async (t) => {
  const { write, untilServed, untilRefused, measure, end } = await startMeasured(t, 'directory');
  for (const [what, make] of Object.entries(unusual))
    await measure(what, () => untilServed(() => write('shop.yaml', make())));
  for (const [what, make] of Object.entries(refused))
    await measure(what, () => untilRefused(() => write('shop.yaml', make())));
  const groupsOf = (count: number) => {
    const toGroup = (at: number) =>
      `  - {name: g${at}, match: {id: [${`a${at}*, `.repeat(1_000)}b]}, domains: [small]}\n`;
    const groups = Array.from({ length: count }, (_, at) => toGroup(at)).join('');
    return `groups:\n${groups}  - {name: rest, domains: ['*']}\n`;
  };
  await untilServed(() => write('shop.yaml', rulesOf(5, 'shop', 1_000)));
  await measure('groups of nodes', () =>
    untilServed(() => write('node-groups.yaml', groupsOf(199))),
  );
  await measure('more groups than there may be', () =>
    untilRefused(() => write('node-groups.yaml', groupsOf(500))),
  );
  await end();
});

test.serial('a repository is read and written while other requests are served', async (t) => {
  const plane = await startMeasured(t, 'Git');
  const { write, untilServed, untilRefused, post, measure, end } = plane;
  await measure('a write', () => untilServed(() => write('shop.yaml', rulesOf(5))));
  await measure('a domain is put', () =>
    untilServed(async () => {
      const headers = { 'if-match': '*' };
      t.like(await post('/domains/shop', { yaml: rulesOf(6) }, 'PUT', headers), { status: 200 });
    }),
  );
  await measure('a lift', () =>
    untilServed(async () => {
      t.like(await post('/lifts', { ...counted, for: '1h', reason: 'a test' }), { status: 200 });
    }),
  );
  await measure('a refused write', () =>
    untilRefused(() => write('shop.yaml', refused['nothing but mistakes']?.() ?? '')),
  );
  await measure('a push of many files', () =>
    untilServed(async () => t.is((await post('/revisions', { files: manyFiles() })).status, 201)),
  );
  await end();
});
