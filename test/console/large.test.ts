// Tests the console with a large fleet, with many domains, and behind a proxy that buffers events, and its size.
import { createServer, request } from 'node:http';
import test, { type ExecutionContext } from 'ava';
import { readConsoleAssets } from '../../control-plane/server/console/assets.ts';
import type { LinkedWorker } from '../../control-plane/server/fleet/fleet.ts';
import type { ConnectedWorker } from '../../control-plane/server/xds/workers.ts';
import { startAdminApi } from '../support/admin-api.ts';
import { closeBrowser, observe, openTab, type Page, testWithBrowser } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { listenFor } from '../support/listen.ts';

const browserTest = testWithBrowser(test.serial);
test.after.always(closeBrowser);

const workerCount = 1_000;
const ruleCount = 2_000;
/** Processor time: 70 ms on a busy machine. A page that repeated per row what it should do once would take many
 * seconds. */
const maxUpdateMs = 1_000;

const rules = Array.from(
  { length: ruleCount },
  (_, index) => `  - key: k${index}\n    rate_limit: { unit: year, requests_per_unit: 3 }\n`,
).join('');

function workerOf(index: number): ConnectedWorker {
  return {
    node: { id: `worker-${index}`, cluster: 'c', metadata: new Map() },
    instance: `${index}`,
    address: `10.0.${index >> 8}.${index & 255}:4711`,
    mode: 'sotw',
    sinceMs: 1,
    sent: undefined,
    acked: { version: 'v', atMs: 1 },
    nacked: index === 7 ? { version: 'v', text: 'no memory is left', atMs: 1 } : undefined,
    wantedVersion: () => 'v',
  };
}

function linkOf(index: number): LinkedWorker {
  return {
    hello: {
      nodeId: `worker-${index}`,
      instance: `${index}`,
      agreement: '',
      countsAlone: false,
      allowsReset: true,
      values: 2,
    },
    address: `10.0.${index >> 8}.${index & 255}:4712`,
    figures: {
      atMs: Date.now(),
      version: 'v',
      decisionsPerSecond: Math.random() * 1_000,
      overLimitPerSecond: 1,
      errorsPerSecond: 0,
      withoutStorePerSecond: 0,
      storeDurations: [],
      durations: [1_000, 10],
      store: { kind: 'redis', serversAway: 0, clockOffsetMs: 0 },
    },
  };
}

async function startLarge(t: ExecutionContext) {
  return await startAdminApi(t, {
    files: { 'd.yaml': `domain: d\ndescriptors:\n${rules}` },
    workers: { list: () => Array.from({ length: workerCount }, (_, index) => workerOf(index)) },
    fleet: {
      list: () => Array.from({ length: workerCount }, (_, index) => linkOf(index)),
      ruleSeries: () => ({
        ...{ until: new Date().toISOString(), known: Array.from({ length: 12 }, () => true) },
        rules: Array.from({ length: ruleCount }, (_, index) => ({
          rule: `d.k${index}`,
          hits: Array.from({ length: 11 }, () => Math.random() * 100),
          overLimit: Array.from({ length: 11 }, () => Math.random()),
          nearLimit: Array.from({ length: 11 }, () => 0),
        })),
      }),
      history: () =>
        Array.from({ length: 180 }, (_, index) => ({
          atMs: Date.now() - (180 - index) * 5_000,
          decisions: 5_000,
          overLimit: 5 * index,
          errors: 0,
        })),
    },
  });
}

/** The CPU milliseconds that the page spends on an update, and the longest frame in wall time. */
async function watchUpdates(page: Page, path: RegExp, updates: number) {
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  const busy = async () => {
    const { metrics } = await session.send('Performance.getMetrics');
    return (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? 0) * 1_000;
  };
  await page.evaluate(`
    globalThis.longest = 0;
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) longest = Math.max(longest, duration);
    }).observe({ type: 'long-animation-frame' });
  `);
  const before = await busy();
  for (let count = 0; count < updates; count++) await page.waitForResponse(path);
  const cpuMs = (await busy()) - before;
  return { cpuMs: cpuMs / updates, longestMs: await page.evaluate<number>('longest') };
}

browserTest('a thousand workers and two thousand rules are bounded work for a page', async (t) => {
  const { port } = await startLarge(t);
  const { page, complaints } = await openTab(t);
  await page.goto(`http://127.0.0.1:${port}/console/`);
  await page.getByText('no memory is left', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Show 100 more of 900' }).waitFor();
  const fleet = await watchUpdates(page, /\/status\?workers=true/, 2);
  const violations = await observe(page, 'large-fleet');
  await page.goto(`http://127.0.0.1:${port}/console/#/rules?domain=d`);
  await page.getByText('2,000 rules').waitFor();
  const rulesPage = await watchUpdates(page, /\/traffic\/rules/, 2);
  violations.push(...(await observe(page, 'large-rules')));
  await page.getByLabel('Find a rule').fill('k1999');
  await page.getByText('1 rule', { exact: true }).waitFor();
  t.log('CPU of an update and longest frame, in ms:', { fleet, rules: rulesPage });
  t.true(fleet.cpuMs < maxUpdateMs, `${fleet.cpuMs} ms`);
  t.true(rulesPage.cpuMs < maxUpdateMs, `${rulesPage.cpuMs} ms`);
  t.deepEqual(violations, []);
  t.deepEqual(complaints, []);
});

browserTest('each of ten thousand domains is found by name', async (t) => {
  const files = Array.from({ length: 100 }, (_, file) => {
    const documents = Array.from(
      { length: 100 },
      (_, index) =>
        `domain: d-${file}-${index}\ndescriptors:\n  - key: k\n    rate_limit: { unit: year, requests_per_unit: 3 }\n`,
    );
    return documents.map((text, index) => [`d-${file}-${index}.yaml`, text] as const);
  }).flat();
  const { port } = await startAdminApi(t, { files: Object.fromEntries(files) });
  const { page } = await openTab(t);
  await page.goto(`http://127.0.0.1:${port}/console/#/rules`);
  await page.getByText('500 of 10000; find the others by name.').waitFor();
  await page.getByLabel('Find a domain').fill('d-99-99');
  await page.getByRole('link', { name: 'd-99-99 1' }).click();
  await page.getByRole('heading', { name: 'd-99-99' }).waitFor();
  t.pass();
});

browserTest('behind a proxy that buffers events, pages poll', async (t) => {
  const { port, rules: folder } = await startAdminApi(t, {
    files: { 'd.yaml': 'domain: d\ndescriptors:\n  - key: before\n' },
  });
  let asked = 0;
  const proxy = createServer((incoming, outgoing) => {
    asked += incoming.url?.endsWith('/status') ? 1 : 0;
    if (incoming.url?.endsWith('/events')) return;
    const { method, url: path } = incoming;
    const host = `127.0.0.1:${port}`;
    const passed = request({ port, method, path, headers: { ...incoming.headers, host } });
    passed.on('response', (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    incoming.pipe(passed);
  });
  const proxyPort = await listenFor(t, proxy);
  const { page } = await openTab(t);
  await page.goto(`http://127.0.0.1:${proxyPort}/console/#/rules`);
  await page.getByText('before').waitFor();
  folder.replace('d.yaml', 'domain: d\ndescriptors:\n  - key: after\n');
  await page.getByText('after', { exact: true }).waitFor();
  await eventually('the page shows its interval', async () => {
    return (await page.locator('.foot').innerText()).includes('Every 5 s');
  });
  t.true(asked >= 2);
});

test('all that a browser loads is below 150 kB compressed', async (t) => {
  const { files } = await readConsoleAssets();
  const bytes = [...files.values()].reduce((sum, { bodies }) => sum + bodies.gzip.length, 0);
  t.log(`${bytes} bytes with gzip`);
  t.true(bytes < 150_000, `${bytes} bytes`);
});
