// Tests what pages still show when a change was not announced, and what they show before a request is answered.
import test from 'ava';
import { startAdminApi } from '../support/admin-api.ts';
import { closeBrowser, openTab, testWithBrowser } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { readPage, shows } from './console-fixture.ts';

const browserTest = testWithBrowser(test.serial);
test.after.always(closeBrowser);

const options = {
  files: {
    'd.yaml':
      'domain: shop\ndescriptors:\n  - key: k\n    rate_limit: { unit: day, requests_per_unit: 3 }\n',
    'e.yaml': 'domain: mail\n',
  },
};

browserTest('a page shows that no worker reports only until one does', async (t) => {
  const figures = {
    ...{ atMs: Date.now(), version: 'v', decisionsPerSecond: 1, overLimitPerSecond: 0 },
    errorsPerSecond: 0,
    ...{ withoutStorePerSecond: 0, storeDurations: [], durations: [1] },
    store: { kind: 'redis', serversAway: 0, clockOffsetMs: 0 },
  };
  const hello = {
    ...{ nodeId: 'w', instance: 'i', agreement: '', countsAlone: false },
    ...{ allowsReset: true, values: 2 },
  };
  const linked = { hello, address: '10.0.0.1:1', figures };
  let reports = false;
  const fleet = { list: () => (reports ? [linked] : []) };
  const { port } = await startAdminApi(t, { ...options, fleet });
  const { page } = await openTab(t);
  await page.goto(`http://127.0.0.1:${port}/console/#/rules`);
  await shows(page, /No worker reports/);
  reports = true;
  await eventually('the page lists a worker', async () => {
    return !(await readPage(page)).includes('No worker reports');
  });
  t.pass();
});

browserTest('a search opens the result for its own text, not the previous one', async (t) => {
  const { port } = await startAdminApi(t, options);
  const { page } = await openTab(t);
  const answers = Promise.withResolvers<void>();
  await page.route(/\/finds\?text=mail/, async (route) => {
    await answers.promise;
    await route.continue();
  });
  await page.goto(`http://127.0.0.1:${port}/console/#/rules`);
  await page.getByRole('button', { name: 'Why was this refused?' }).click();
  const dialog = page.getByRole('dialog');
  const box = dialog.getByRole('searchbox');
  await box.fill('nobody');
  await dialog
    .getByRole('link', { name: /nobody/ })
    .first()
    .waitFor();
  const asked = page.waitForRequest(/\/finds\?text=mail/);
  await box.fill('mail');
  await asked;
  await box.fill('shop');
  await dialog.getByRole('link', { name: /shop\.k/ }).waitFor();
  await box.fill('mail');
  await box.press('Enter');
  answers.resolve();
  await eventually('it is open', () => page.url().endsWith('#/rules?domain=mail'));
  t.false(await dialog.isVisible());
});

browserTest('a failed request is repeated, whatever the page waits for', async (t) => {
  const { port } = await startAdminApi(t, options);
  const { page } = await openTab(t);
  let isAway = true;
  await page.route(/\/domains\/shop/, (route) => (isAway ? route.abort() : route.continue()));
  await page.goto(`http://127.0.0.1:${port}/console/#/change?domain=shop&rule=shop.k`);
  await shows(page, /does not answer\. Retrying every five seconds/);
  isAway = false;
  await page.getByLabel('The rule, as YAML').waitFor();
  t.pass();
});
