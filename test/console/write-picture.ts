// Writes the picture of the console for the documents: `node test/console/write-picture.ts`. The page is real, in a
// real browser; the fleet is invented.
import { join } from 'node:path';
import type { ConnectedWorker } from '../../control-plane/server/xds/workers.ts';
import { startAdminApi } from '../support/admin-api.ts';
import { closeBrowser, openTab } from '../support/browser.ts';

const file = join(import.meta.dirname, '..', '..', 'control-plane', 'docs', 'console.png');
const names = ['eu-1', 'eu-2', 'eu-3', 'us-1', 'us-2', 'us-3'];
const version = '821375a73fad7df324b3a2e087591d4f';
const nowMs = Date.now();
const tasks: (() => unknown)[] = [];
const lifetime = { teardown: (task: () => unknown) => void tasks.push(task) } as never;

const workers = names.map(
  (name, index): ConnectedWorker => ({
    node: { id: `worker-${name}`, cluster: 'edge', metadata: new Map() },
    instance: name,
    address: `10.4.${index}.17:41872`,
    mode: 'sotw',
    sinceMs: nowMs - 3_600_000 * (index + 20),
    sent: undefined,
    acked: { version, atMs: nowMs - 840_000 },
    nacked: undefined,
    wantedVersion: () => version,
  }),
);
const links = names.map((name, index) => ({
  hello: {
    nodeId: `worker-${name}`,
    instance: name,
    agreement: '',
    countsAlone: false,
    allowsReset: true,
    values: 2,
  },
  address: `10.4.${index}.17:41873`,
  figures: {
    atMs: nowMs + 60_000,
    version,
    decisionsPerSecond: 1_180 + 37 * ((index * 5) % 7),
    overLimitPerSecond: 14 + ((index * 3) % 5),
    errorsPerSecond: 0,
    withoutStorePerSecond: 0,
    storeDurations: [],
    durations: [0, 0, 900, 90, 9],
    store: { kind: 'redis', serversAway: 0, clockOffsetMs: 0 },
  },
  problem: undefined,
}));
const history = Array.from({ length: 180 }, (_, index) => ({
  atMs: Math.floor(nowMs / 5_000) * 5_000 - (180 - index) * 5_000,
  decisions: 36_000 + 3_000 * Math.sin(index / 19) + 900 * Math.sin(index * 1.7),
  overLimit: index > 96 && index < 134 ? 9_000 * Math.sin(((index - 96) / 38) * Math.PI) : 480,
  errors: 0,
}));

const { port } = await startAdminApi(lifetime, {
  files: {
    'shop.yaml': `domain: shop
descriptors:
  - key: customer
    rate_limit: { unit: minute, requests_per_unit: 300 }
  - key: path
    value: /reports/*
    rate_limit: { unit: hour, requests_per_unit: 100 }
`,
    'mail.yaml':
      'domain: mail\ndescriptors:\n  - key: tenant\n    rate_limit: { unit: second, requests_per_unit: 10 }\n',
  },
  workers: { list: () => workers },
  fleet: { list: () => links, history: () => history },
});
const { page } = await openTab(lifetime);
await page.setViewportSize({ width: 1240, height: 830 });
await page.goto(`http://127.0.0.1:${port}/console/`);
await page.getByText('worker-us-3').waitFor();
await page.locator('.chart canvas').waitFor();
await page.screenshot({ path: file });
await closeBrowser();
for (const task of tasks.reverse()) await task();
