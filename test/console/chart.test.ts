// The chart of the fleet: what it shows of an hour, with reports that the test invents.
import test, { type ExecutionContext } from 'ava';
import type { TrafficSlot } from '../../control-plane/fleet/traffic-history.ts';
import { startAdminApi } from '../support/admin-api.ts';
import { closeBrowser, look, openTab, type Page } from '../support/browser.ts';
import { testWith } from '../support/installed-tool.ts';
import { shows } from './console-fixture.ts';

const browserTest = testWith(test.serial, 'chromium');
test.after.always(closeBrowser);

const slotMs = 5_000;

/** With 100 decisions per second at these ages in slots. */
async function openChart(t: ExecutionContext, isKnown: (age: number) => boolean): Promise<Page> {
  const { port } = await startAdminApi(t, {
    files: { 'd.yaml': 'domain: d\ndescriptors:\n  - key: k\n' },
    maxResponseBytes: 16_000_000,
    verifyWebhook: async () => ({ ok: true }),
    fleet: { history: () => historyOf(isKnown) },
  });
  const { page } = await openTab(t);
  await page.goto(`http://127.0.0.1:${port}/console/#/fleet?search=nobody`);
  await page.locator('.chart canvas').waitFor();
  return page;
}

function historyOf(isKnown: (age: number) => boolean): TrafficSlot[] {
  const now = Math.floor(Date.now() / slotMs);
  const ages = Array.from({ length: 720 }, (_, index) => 721 - index).filter(isKnown);
  return ages.map((age) => ({
    atMs: (now - age) * slotMs,
    decisions: 500,
    overLimit: 50,
    errors: 0,
  }));
}

async function pointAt(page: Page, share: number): Promise<void> {
  const box = await page.locator('.chart .u-over').boundingBox();
  if (box === null) throw new Error('there is no chart');
  await page.mouse.move(box.x + box.width * share, box.y + 60);
}

browserTest(
  'the chart shows a quarter of an hour or an hour, and the address says which',
  async (t) => {
    const page = await openChart(t, () => true);
    const spans = page.getByRole('navigation', { name: 'Span of the chart' });
    t.is(await spans.locator('[aria-current]').innerText(), '15 min');
    await pointAt(page, 0.5);
    await shows(page, /second, at \d\d:\d\d:\d\d decisions 100 over limit 10 errors 0/);
    await spans.getByRole('link', { name: '1 h' }).click();
    await page.locator('.spans [aria-current]', { hasText: '1 h' }).waitFor();
    t.regex(page.url(), /#\/fleet\?search=nobody&span=1h$/);
    await pointAt(page, 0.1);
    await shows(page, /second, at \d\d:\d\d:[0240]0 decisions 100 over limit 10 errors 0/);
    await page.reload();
    await page.locator('.spans [aria-current]', { hasText: '1 h' }).waitFor();
    t.deepEqual(await look(page, 'chart-hour'), []);
  },
);

browserTest('of a time without reports the chart says that nothing is known', async (t) => {
  const page = await openChart(t, (age) => age < 60 || age > 120);
  await pointAt(page, 0.5);
  await shows(page, /decisions not known over limit not known errors not known/);
  await pointAt(page, 0.9);
  await shows(page, /decisions 100 over limit 10 errors 0/);
  t.deepEqual(await look(page, 'chart-gap'), []);
});
