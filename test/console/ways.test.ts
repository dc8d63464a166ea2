// Tests where links in the console lead: from a refusal to its undo, from a name to its page, from a table to a file.
import test from 'ava';
import { closeBrowser, observe, type Page, testWithBrowser } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { sampleRules, shows, startConsole, startFed, visit } from './console-fixture.ts';

const browserTest = testWithBrowser(test.serial);
test.after.always(closeBrowser);

/** Types into the box that `/` opens, and chooses the first result. */
async function find(page: Page, text: string, first: RegExp): Promise<void> {
  await page.keyboard.press('/');
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('searchbox').fill(text);
  await dialog.getByRole('link', { name: first }).first().waitFor();
  await page.keyboard.press('Enter');
  await dialog.waitFor({ state: 'detached' });
}

browserTest(
  'the reason for a refusal links to the author of the limit, and to the dialog that undoes only that change',
  async (t) => {
    const served = await startConsole(t, {
      'd.yaml': sampleRules.replace('per_unit: 3', 'per_unit: 30'),
    });
    served.rules.replace('d.yaml', sampleRules);
    await eventually('two revisions', async () => {
      return (await served.plane.fetch('/revisions')).body.revisions.length === 2;
    });
    const worker = await startFed(t, served, 'w-1');
    for (let count = 0; count < 6; count++) await worker.decide('customer=ada');
    const { page, complaints } = await visit(t, served);
    await page.getByText('in force').first().waitFor();
    await page.keyboard.press('/');
    await page.getByRole('dialog').getByRole('searchbox').fill('somebody');
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await find(page, 'customer=ada', /customer=ada/);
    await shows(page, /Refused now \(429\): 6 of 3 a year/);
    await shows(page, /- key: customer metadata: \{ owner: checkout \}/);
    await shows(page, /Changed last .* in \w{12}.* 30 per year -> 3 per year/);
    const violations = await observe(page, 'why');
    await page.getByRole('button', { name: 'Undo that change…' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('3 per year -> 30 per year').waitFor();
    await page.getByLabel('Reason, for the audit log').fill('ada pays for more');
    await page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'detached' });
    await shows(page, /Passes.* 30 per year/);
    t.is((await worker.decide('customer=ada')).status, 200);

    for (const [text, first, shown] of [
      ['d.plan', /Rule d\.plan_free/, /A rule: its text/],
      ['w-1', /Worker w-1/, /A worker: its rules.* in force/],
    ] as const) {
      await find(page, text, first);
      await shows(page, shown);
      violations.push(...(await observe(page, `found-${text}`)));
    }
    t.deepEqual(violations, []);
    t.deepEqual(complaints, []);
  },
);

browserTest('tables can be sorted by their columns and exported as CSV', async (t) => {
  const rules = ['k10', 'k9', 'k2'].map(
    (key) => `  - key: ${key}\n    rate_limit: { unit: year, requests_per_unit: 3 }\n`,
  );
  const served = await startConsole(t, { 'd.yaml': `domain: d\ndescriptors:\n${rules.join('')}` });
  const { page } = await visit(t, served, 'rules?domain=d');
  await shows(page, /k10 .* k9 .* k2/);
  await page.getByRole('button', { name: 'Rule', exact: true }).click();
  await shows(page, /k2 .* k9 .* k10/);
  const saving = page.waitForEvent('download');
  await page.getByRole('button', { name: 'CSV' }).click();
  const saved = await saving;
  t.is(saved.suggestedFilename(), 'rules-of-d.csv');
  const chunks: Buffer[] = [];
  for await (const chunk of await saved.createReadStream()) chunks.push(chunk as Buffer);
  t.is(
    Buffer.concat(chunks).toString(),
    [
      'Rule,Limit,Hits,Over limit,Owner and source',
      'd.k2,3 per year,0,0,d.yaml:7',
      'd.k9,3 per year,0,0,d.yaml:5',
      'd.k10,3 per year,0,0,d.yaml:3',
      '',
    ].join('\r\n'),
  );
});
