// Tests a change of a rule in the console: its problems and the requests that it would refuse are shown beside it, and
// then the commit, or what prevents it.
import test from 'ava';
import { systemClock } from '../../shared/clock.ts';
import { closeBrowser, observe, testWithBrowser } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import {
  audited,
  readPage,
  sampleRules,
  shows,
  startConsole,
  startFed,
  visit,
} from './console-fixture.ts';

const browserTest = testWithBrowser(test.serial);
test.after.always(closeBrowser);

browserTest(
  'a rule is edited where it is shown: checked during editing, with the requests that it would refuse, then committed',
  async (t) => {
    const sourceUrl = 'https://git.example/rules/blob/main/{file}#L{line}';
    const served = await startConsole(t, { 'd.yaml': sampleRules }, '--source-url', sourceUrl);
    // Reports of the last two minutes count, and those of a faster clock would have expired before they are all read.
    const worker = await startFed(t, served, 'w-1', systemClock);
    for (let count = 0; count < 9; count++) await worker.decide('customer=ada');
    await eventually('ada is shown', async () => {
      return (await served.plane.fetch('/top')).body.values[0]?.atLeast === 6;
    });
    const { page, context, complaints } = await visit(t, served, 'rule?rule=d.customer');
    const link = page.getByRole('link', { name: 'd.yaml:3' });
    t.is(await link.first().getAttribute('href'), 'https://git.example/rules/blob/main/d.yaml#L3');
    await page.getByRole('link', { name: 'Change…' }).click();
    const editor = page.getByLabel('The rule, as YAML');
    await shows(page, /as it is now .* Change the limit, and/);
    t.is(await editor.inputValue(), `${sampleRules.split('\n').slice(2, 5).join('\n')}\n`);
    const commit = page.getByRole('button', { name: 'Commit…' });
    t.true(await commit.isDisabled());
    const text = await editor.inputValue();

    await editor.fill(text.replace('year', 'yaer'));
    await shows(page, /not accepted .* d\.yaml:5:25 Invalid rate limit unit 'yaer'/);
    await shows(page, /Did you mean 'year'/);
    await shows(page, /Nothing, as long as the rules have errors\./);
    t.true(await commit.isDisabled());
    const violations = await observe(page, 'what-if-broken');

    await editor.fill(text.replace('per_unit: 3', 'per_unit: 1'));
    await shows(page, /accepted .* estimate .* Refused 6 as it was Would be refused 6 to 8 about/);
    await shows(page, /customer=ada d\.customer 6 6 to 8/);
    await shows(page, /3 per year -> 1 per year/);
    violations.push(...(await observe(page, 'what-if')));
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.getByRole('button', { name: 'Copy the patch' }).click();
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    t.regex(
      await page.evaluate<string>('navigator.clipboard.readText()'),
      /^--- a\/d\.yaml\n\+\+\+ b\/d\.yaml\n@@ -2,7 \+2,7 @@\n.*\n-.*per_unit: 3 }\n\+.*per_unit: 1 }\n/s,
    );

    served.rules.replace('d.yaml', sampleRules.replace('per_unit: 20', 'per_unit: 30'));
    await shows(page, /The domain was changed meanwhile, in \w{12}.* Your text is kept\./);
    t.true(await commit.isDisabled());
    violations.push(...(await observe(page, 'what-if-stale')));
    await page.getByRole('button', { name: 'Put my text in the newer file' }).click();
    await eventually('it can be committed', async () => !(await commit.isDisabled())).catch(
      async (error: Error) => t.fail(`${error.message}; it shows: ${await readPage(page)}`),
    );
    await commit.click();
    const dialog = page.getByRole('dialog');
    await shows(
      dialog,
      /3 per year -> 1 per year.*Estimated from the last two minutes 6 to 8 would have been refused, in place of 6\.\s+All workers get it at once\./s,
    );
    violations.push(...(await observe(page, 'what-if-commit')));
    await page.getByLabel('Reason, for the audit log').fill('they pay less');
    await page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'detached' });
    await shows(page, /1 per year d\.yaml:3/);
    await audited(served, /audit: put domain d: they pay less: done/);
    const { files } = (await served.plane.fetch('/domains/d')).body;
    t.is(
      files[0].yaml,
      sampleRules.replace('per_unit: 20', 'per_unit: 30').replace('per_unit: 3 }', 'per_unit: 1 }'),
    );

    await page.getByRole('link', { name: 'Change…' }).click();
    await shows(page, /as it is now/);
    t.is(await served.plane.end('SIGTERM'), 0);
    await editor.fill(text.replace('per_unit: 3', 'per_unit: 2'));
    await shows(page, /The control plane does not answer\./);
    t.regex(await editor.inputValue(), /per_unit: 2/);
    t.true(await commit.isDisabled());
    violations.push(...(await observe(page, 'what-if-silent')));
    t.deepEqual(violations, []);
    t.deepEqual(
      complaints.filter((line) => !/Failed to load resource|net::ERR/.test(line)),
      [],
    );
  },
);
