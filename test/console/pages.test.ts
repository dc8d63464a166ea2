// Tests what the pages of the console show, in a real browser: useful, empty and broken, light and dark, wide and
// narrow. The pictures are in test-output/console for inspection.
import { readFileSync } from 'node:fs';
import test from 'ava';
import { loadFleetLink } from '../../shared/wire/fleet.ts';
import type { FromWorkerMessage } from '../../shared/wire/fleet-messages.ts';
import { callDiscovery } from '../support/ads-fixture.ts';
import { closeBrowser, observe, openTab, testWithBrowser } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import {
  consoleUrl,
  readPage,
  sampleRules,
  shows,
  startConsole,
  startFed,
  visit,
} from './console-fixture.ts';

const browserTest = testWithBrowser(test.serial);
test.after.always(closeBrowser);

browserTest('each page shows what the fleet does, to all users', async (t) => {
  const served = await startConsole(t, { 'd.yaml': sampleRules });
  served.rules.replace('d.yaml', sampleRules.replace('per_unit: 20', 'per_unit: 30'));
  const worker = await startFed(t, served, 'w-1');
  await startFed(t, served, 'w-2');
  for (let count = 0; count < 8; count++) await worker.decide('customer=ada', 'plan=free');
  await worker.decide('custmer=ada');
  await eventually('all is reported', async () => {
    const { body: top } = await served.plane.fetch('/top');
    const { body: unmatched } = await served.plane.fetch('/unmatched');
    return top.values[0]?.atLeast === 5 && unmatched.samples.length > 0;
  });

  const { page, complaints, requests } = await visit(t, served);
  const expected: Readonly<Record<string, readonly RegExp[]>> = {
    // First, since it covers the last minute.
    limited: [/customer=ada d d\.customer .* 5 Counter ?Reset/, /d\.customer [\d.]+/],
    fleet: [/2 of 2 in force/, /w-1 .*in force/, /in 1 domain/],
    'rules?domain=d': [/customer 3 per year/, /checkout d\.yaml:3/, /shadow mode/],
    unmatched: [
      /custmer=ada d No rule has the key 'custmer' Did you mean 'customer'\? d\.yaml:3:5/,
    ],
    revisions: [/in force .* What changed/],
    'try?domain=d&descriptor=customer%3Dada': [
      /The limit of 'customer' applies\. 3 per year, by d\.yaml:3\./,
      /8 of 3 per year used up/,
    ],
  };
  const violations: string[] = [];
  for (const [where, texts] of Object.entries(expected)) {
    await page.goto(consoleUrl(served.plane, where));
    for (const text of texts) await shows(page, text);
    violations.push(...(await observe(page, `busy-${where.split('?')[0]}`)));
  }
  t.deepEqual(violations, []);
  t.deepEqual(complaints, []);
  const { origin } = new URL(served.plane.adminUrl);
  t.deepEqual(
    requests.filter((address) => new URL(address).origin !== origin),
    [],
    'nothing leaves the machine',
  );
  await shows(page.locator('.verdict'), /is in force on all 2 connected workers/);
});

browserTest('workers with one node id are distinguished, an unjudged link is named', async (t) => {
  const served = await startConsole(t, { 'd.yaml': sampleRules });
  const workers = [await startFed(t, served, 'edge'), await startFed(t, served, 'edge')];
  const [, port] = served.plane.xdsAddress.split(':');
  const link = callDiscovery<FromWorkerMessage, object>(t, Number(port), loadFleetLink());
  const hello = { nodeId: 'stranger', instance: 'of-nobody', agreement: '', countsAlone: false };
  link.send({ hello: { ...hello, allowsReset: false, values: 2 } });
  const { page, complaints } = await visit(t, served);
  for (const worker of workers) {
    const [, instance = ''] = / as instance (\S+)\n/.exec(await worker.page('/status')) ?? [];
    await shows(page, new RegExp(`edge \\(instance ${instance.slice(0, 8)}\\)`));
  }
  await shows(
    page,
    /Links that do not count in rollouts .* stranger of-nobod \S+ no worker of this instance gets its rules here/,
  );
  t.deepEqual(await observe(page, 'fleet-instances'), []);
  t.deepEqual(complaints, []);
});

browserTest('a page that is requested while the console starts is shown', async (t) => {
  const served = await startConsole(t, { 'd.yaml': sampleRules });
  await startFed(t, served, 'w-1');
  const { page } = await openTab(t);
  // Right before the page would be notified of another address, after the first one is shown.
  await page.addInitScript(`
    const listen = addEventListener;
    globalThis.addEventListener = (type, ...rest) => {
      if (type === 'hashchange') history.replaceState(null, '', '#/unmatched');
      listen(type, ...rest);
    };
  `);
  await page.goto(consoleUrl(served.plane, 'fleet'));
  await shows(page, /Every descriptor matches a rule\./);
  t.pass();
});

browserTest(
  'a value that is not refused links to its counter, a rule has its history, and ? lists the keys',
  async (t) => {
    const served = await startConsole(t, { 'd.yaml': sampleRules });
    served.rules.replace('d.yaml', sampleRules.replace('per_unit: 3', 'per_unit: 70000'));
    const { page } = await visit(t, served, 'rules?domain=d');
    await shows(page, /70,000 per year/);
    await page.keyboard.press('?');
    await page.getByRole('dialog').getByRole('heading', { name: 'Keys' }).waitFor();
    const violations = await observe(page, 'keys');
    await page.keyboard.press('Escape');
    await page.keyboard.press('/');
    await page.getByRole('dialog').getByRole('searchbox').fill('zoe');
    await page.getByRole('link', { name: /Counter ?customer=zoe in d, 70,000 per year/ }).click();
    await shows(page, /customer=zoe .*by the rule d\.customer/);
    await page.goto(consoleUrl(served.plane, 'rule?rule=d.customer'));
    await shows(
      page,
      /History .*70,000 per year 3 per year -> 70,000 per year .*The oldest known value/,
    );
    violations.push(...(await observe(page, 'rule-history')));
    t.deepEqual(violations, []);
  },
);

browserTest('a change appears without a reload', async (t) => {
  const served = await startConsole(t, { 'd.yaml': sampleRules });
  const { page } = await visit(t, served, 'rules?domain=d');
  await shows(page, /3 per year/);
  served.rules.replace('d.yaml', sampleRules.replace('per_unit: 3', 'per_unit: 77'));
  await shows(page, /77 per year/);
  t.pass();
});

browserTest('on a phone every page can be reached without scrolling sideways', async (t) => {
  const served = await startConsole(t, { 'd.yaml': sampleRules });
  const { page } = await visit(t, served, 'zzz');
  await shows(page, /No such page/);
  await eventually('its title', async () => (await page.title()) === 'No such page · Ratelane');
  await page.getByRole('main').getByRole('link', { name: 'Revisions' }).waitFor();
  await page.goto(consoleUrl(served.plane, 'fleet'));
  await shows(page, /No worker is connected/);
  for (const width of [360, 420]) {
    await page.setViewportSize({ width, height: 800 });
    for (const link of await page
      .getByRole('navigation', { name: 'Pages' })
      .getByRole('link')
      .all()) {
      const box = await link.boundingBox();
      t.true(box !== null && box.x >= 0 && box.x + box.width <= width, await link.innerText());
    }
    t.true(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'));
  }
  await page.setViewportSize({ width: 390, height: 844 });
  const { y = 999 } = (await page.getByRole('main').boundingBox()) ?? {};
  t.true(y <= 120, `the page begins at ${y}`);
  await page.setViewportSize({ width: 360, height: 800 });
  await page.goto(consoleUrl(served.plane, 'rules?domain=d'));
  await shows(page, /checkout_by 20 per year/);
  t.is(
    await page.evaluate('document.documentElement.scrollWidth'),
    360,
    'a wide table is no wider',
  );
  for (const cell of await page.getByRole('row', { name: 'checkout_by' }).getByRole('cell').all()) {
    const { x = 0, width = 0 } = (await cell.boundingBox()) ?? {};
    t.true(x + width <= 360, `all of a row is seen: ${await cell.innerText()}`);
  }
});

browserTest('without rules, workers and traffic each page explains what to do', async (t) => {
  const served = await startConsole(t, {});
  const { page, complaints } = await visit(t, served);
  const expected: Readonly<Record<string, RegExp>> = {
    fleet: new RegExp(
      `No worker is connected\\. .*CONFIG_TYPE=GRPC_XDS_SOTW CONFIG_GRPC_XDS_SERVER_URL=127\\.0\\.0\\.1:${served.plane.xdsAddress.split(':')[1]} `,
    ),
    rules: /No rules are in force\. Write a file/,
    limited: /No worker reports\. Workers of Ratelane report every five seconds/,
    unmatched: /No worker reports\./,
    revisions: /Revisions/,
    activity: /This control plane started/,
    try: /Nothing has been tried yet\./,
  };
  const violations: string[] = [];
  const links = page.getByRole('navigation', { name: 'Pages' }).getByRole('link');
  await links.first().waitFor();
  const named = (await links.all()).map(async (link) =>
    (await link.getAttribute('href'))?.slice(2),
  );
  t.deepEqual(await Promise.all(named), Object.keys(expected), 'each page is in the list above');
  const guide = readFileSync(
    new URL('../../control-plane/docs/operating.md', import.meta.url),
    'utf8',
  );
  const [, rows = ''] = /^\| Page \| Shows \|\n.*\n((?:\|.*\n)*)/m.exec(guide) ?? [];
  const titles = [...rows.matchAll(/^\| (.*?) \|/gm)].map(([, title]) => title);
  t.deepEqual(
    titles,
    await links.allInnerTexts(),
    'the guide operating.md has a row for each page',
  );
  for (const [name, text] of Object.entries(expected)) {
    await page.goto(consoleUrl(served.plane, name));
    await shows(page, text);
    violations.push(...(await observe(page, `empty-${name}`)));
  }
  t.deepEqual(violations, []);
  t.deepEqual(complaints, []);
});

browserTest('errors are shown with their lines, a silent control plane is reported', async (t) => {
  const served = await startConsole(t, { 'd.yaml': sampleRules });
  served.rules.replace('d.yaml', sampleRules.replace('unit: year', 'unit: yaer'));
  const { page } = await visit(t, served, 'revisions');
  await shows(page, /The newest revision is not served/);
  await shows(page, /d\.yaml:5:25 Invalid rate limit unit 'yaer' rate_limit: \{ unit: yaer.*\^/);
  await shows(page, /Did you mean 'year'/);
  const violations = await observe(page, 'broken-revision');
  await page.goto(consoleUrl(served.plane, 'rules?domain=d'));
  await shows(page, /3 per year/);
  t.is(await served.plane.end('SIGTERM'), 0);
  await shows(
    page,
    /The control plane does not answer\. What is shown is as of \d\d:\d\d\..*3 per year/,
  );
  await shows(page.locator('.foot'), /No answer/);
  violations.push(...(await observe(page, 'broken-silent')));
  await served.plane.start();
  await eventually('it is live again', async () => !/does not answer/.test(await readPage(page)));
  t.deepEqual(violations, []);
});

browserTest('foreign texts are shown unchanged, and never executed', async (t) => {
  const hostile = '<script>alert(2)</script>\u202e\u0007';
  const served = await startConsole(t, { 'd.yaml': sampleRules });
  const worker = await startFed(t, served, '<script>alert(1)</script>');
  for (let count = 0; count < 5; count++) await worker.decide(`customer=${hostile}`);
  await worker.decide(`nobody=${hostile}`);
  const { page, complaints } = await visit(t, served, 'limited');
  page.on('dialog', () => t.fail('a script ran'));
  await shows(page, /customer=<script>alert\(2\)<\/script>\\u\{202e\}\\u\{7\}/);
  await page.getByRole('button', { name: 'Counter', exact: true }).click();
  await shows(page, /Counted by <script>alert\(1\)<\/script> 5 of 3 per year/);
  await page.goto(consoleUrl(served.plane, 'unmatched'));
  await shows(page, /nobody=<script>alert\(2\)<\/script>\\u\{202e\}/);
  await page.goto(consoleUrl(served.plane, 'fleet'));
  await shows(page, /<script>alert\(1\)<\/script>/);
  t.deepEqual(complaints, []);
});
