// What people send and write, at sizes that take seconds to examine, while workers and probes are served.
import { get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { createControlPlaneProcess } from '../../support/control-plane-process.ts';
import { eventually } from '../../support/eventually.ts';
import { createRulesFolder } from '../../support/rules-folder.ts';

const meter = new URL('../../support/slice-meter.ts', import.meta.url);
/** Of the thread's own time. A slice is to take 20 ms, with what a garbage collection adds on a machine without a free core;
 * before there were slices the same inputs took 200 to 1,300. */
const longestMs = 100;

const rule = (at: number, amount: number) =>
  `  - key: user\n    value: customer-${at}\n    rate_limit: {unit: minute, requests_per_unit: ${amount}}\n`;
const rulesOf = (count: number, amount = 5, domain = 'shop') =>
  `domain: ${domain}\ndescriptors:\n${Array.from({ length: count }, (_, at) => rule(at, amount)).join('')}`;
/** About a mebibyte. */
const many = 10_000;
const worst = {
  aliases: '- *a\n'.repeat(60_000),
  anchors: `domain: d\ndescriptors:\n${Array.from({ length: 20_000 }, (_, at) => `  - &a${at} {key: k${at}}\n`).join('')}`,
  nesting: '['.repeat(500_000),
  'long keys': `domain: d\ndescriptors:\n${`  - key: ${'k'.repeat(10_000)}\n`.repeat(100)}`,
} as const;

test('probes are answered through each route and each look at the store, and no slice is long', async (t) => {
  const rules = createRulesFolder(t);
  rules.write('shop.yaml', rulesOf(10));
  const plane = await createControlPlaneProcess(t, {
    flags: ['--config-dir', rules.path, '--allow-removal'],
    env: { NODE_OPTIONS: `--import=${meter.href}` },
  });
  await plane.start();
  const said = () => [...plane.output().matchAll(/longest slice: ([\d.]+) ms/g)];
  async function takeLongest(): Promise<number> {
    const before = said().length;
    plane.signal('SIGUSR2');
    await eventually('the meter says', () => said().length > before);
    return Number(said().at(-1)?.[1]);
  }
  let isOver = false;
  let answered = 0;
  const probing = (async () => {
    while (!isOver) {
      await new Promise<void>((resolve, reject) => {
        get(`${plane.adminUrl}/healthcheck`, (answer) => {
          t.is(answer.statusCode, 200);
          answer.resume().once('end', resolve);
        }).once('error', reject);
      });
      answered++;
      await sleep(20);
    }
  })();
  const post = (path: string, body: object, method = 'POST', headers = {}) =>
    plane.fetch(path, {
      method,
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json', ...headers },
    });
  const served = (limits: number) =>
    eventually(`${limits} limits are in force`, () =>
      plane.output().includes(`in force: 1 domain, ${limits} limits`),
    );
  const small = (count: number) =>
    Array.from({ length: count }, (_, at) => ({
      path: `f${at}.yaml`,
      text: rulesOf(1, 1, `d${at}`),
    }));
  const wrong = small(1_000).map(({ path }) => ({
    path,
    text: `domain: d\ndescriptors:\n${'  - kee: 1\n'.repeat(100)}`,
  }));
  const steps: Readonly<Record<string, () => Promise<unknown>>> = {
    ...Object.fromEntries(
      Object.entries({ ordinary: rulesOf(many), ...worst }).map(([what, yaml]) => [
        `validations: ${what}`,
        async () => t.is((await post('/validations', { yaml })).status, 200),
      ]),
    ),
    'validations: many files': () => post('/validations', { files: small(3_000) }),
    'validations: many problems': () => post('/validations', { files: wrong }),
    effects: () => post('/effects', { domain: 'shop', yaml: rulesOf(many, 6) }),
    'put a domain': async () => {
      const put = await post('/domains/shop', { yaml: rulesOf(many, 7) }, 'PUT', {
        'if-match': '*',
      });
      t.is(put.status, 200);
      await served(many);
    },
    explanations: () =>
      post('/explanations', {
        domain: 'shop',
        descriptors: [[{ key: 'user', value: 'customer-7' }]],
      }),
    'what a push would change': () =>
      post('/revisions/diff', { files: [{ path: 'shop.yaml', text: rulesOf(many, 8) }] }),
    'a look at the store': async () => {
      rules.write('shop.yaml', rulesOf(many + 1, 9));
      await served(many + 1);
    },
    'the changes between revisions': async () => {
      const { body } = await plane.fetch('/revisions');
      const ids = body.revisions.map(({ id }: { id: string }) => id);
      const { status } = await plane.fetch(`/revisions/diff?from=${ids.at(-1)}&to=${ids[0]}`);
      t.is(status, 200);
    },
    'a store with nothing but aliases': async () => {
      rules.write('shop.yaml', worst.aliases);
      await eventually('it is refused', () => plane.output().includes("unknown anchor 'a'"));
    },
  };
  for (const [what, act] of Object.entries(steps)) {
    await takeLongest();
    const before = answered;
    await act();
    const longest = await takeLongest();
    t.log(`${what}: ${longest} ms`);
    t.true(longest <= longestMs, `${what}: ${longest} ms`);
    t.true(answered > before, what);
  }
  isOver = true;
  await probing;
});
