// Tests the chart of the fleet: what it shows of an hour, with reports made by the test.
import test, { type ExecutionContext } from 'ava';
import type { TrafficSlot } from '../../control-plane/server/fleet/traffic-history.ts';
import type { Mark } from '../../control-plane/server/history/last-hour/marks.ts';
import { startAdminApi } from '../support/admin-api.ts';
import {
  closeBrowser,
  observe,
  openTab,
  type Page,
  tabTo,
  testWithBrowser,
} from '../support/browser.ts';
import { shows } from './console-fixture.ts';

const browserTest = testWithBrowser(test.serial);
test.after.always(closeBrowser);

const slotMs = 5_000;

/** Reports 100 decisions per second at these ages, in slots. */
async function openChart(
  t: ExecutionContext,
  isKnown: (age: number) => boolean,
  happened: readonly Omit<Mark, 'atMs'>[] = [],
): Promise<Page> {
  const { port, marks } = await startAdminApi(t, {
    files: { 'd.yaml': 'domain: d\ndescriptors:\n  - key: k\n' },
    fleet: { history: () => historyOf(isKnown) },
  });
  for (const mark of happened) marks.note(mark);
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

browserTest('the address selects a chart of a quarter of an hour or of an hour', async (t) => {
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
  t.deepEqual(await observe(page, 'chart-hour'), []);
});

browserTest('the chart marks a time without reports as unknown', async (t) => {
  const page = await openChart(t, (age) => age < 60 || age > 120);
  await pointAt(page, 0.5);
  await shows(page, /decisions not known over limit not known errors not known/);
  await pointAt(page, 0.9);
  await shows(page, /decisions 100 over limit 10 errors 0/);
  t.deepEqual(await observe(page, 'chart-gap'), []);
});

browserTest('events are marked, readable by pointer and keyboard, and linked', async (t) => {
  const id = 'a1b2c3d4e5f60718293a4b5c6d7e8f90';
  const page = await openChart(t, (age) => age > 3, [
    { kind: 'rollout', revision: id, text: 'The rollout of revision a1b2c3d4e5f6 begins' },
    { kind: 'taken_back', revision: id, text: 'Revision a1b2c3d4e5f6 is taken back' },
    { kind: 'reset', revision: undefined, text: 'ann: reset counters of (customer=\u202eada)' },
  ]);
  const marks = page
    .getByRole('list', { name: 'What happened during this period' })
    .getByRole('link');
  await marks.nth(2).waitFor();
  const names = await Promise.all(
    (await marks.all()).map((mark) => mark.getAttribute('aria-label')),
  );
  t.deepEqual(
    names.map((name) => name?.replace(/^\d\d:\d\d:\d\d /, '')),
    [
      'The rollout of revision a1b2c3d4e5f6 begins',
      'Revision a1b2c3d4e5f6 is taken back',
      'ann: reset counters of (customer=\\u{202e}ada)',
    ],
  );
  const label = marks.nth(1).locator('.label');
  t.false(await label.isVisible());
  await marks.nth(1).hover();
  t.true(await label.isVisible());
  const violations = await observe(page, 'chart-marks');
  await page.mouse.move(0, 0);
  await tabTo(page, names[2] ?? '');
  t.true(await marks.nth(2).locator('.label').isVisible());
  violations.push(...(await observe(page, 'chart-marks-keyboard')));
  await marks.nth(1).click();
  await page.getByRole('heading', { name: 'Revisions' }).waitFor();
  t.regex(page.url(), /#\/revisions\?open=a1b2c3d4e5f6$/);
  t.deepEqual(violations, []);
});
