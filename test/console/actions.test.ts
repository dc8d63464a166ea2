// Tests the actions of users in the console: they log in, roll back, reset counters, approve, and steer rollouts. With
// only the keyboard where it matters.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { closeBrowser, observe, type Page, tabTo, testWithBrowser } from '../support/browser.ts';
import { createControlPlaneProcess } from '../support/control-plane-process.ts';
import { connectWorker } from '../support/discovery-worker.ts';
import { eventually } from '../support/eventually.ts';
import { createRulesFolder } from '../support/rules-folder.ts';
import {
  audited,
  consoleUrl,
  sampleRules,
  shows,
  startConsole,
  startFed,
  visit,
} from './console-fixture.ts';

const browserTest = testWithBrowser(test.serial);
test.after.always(closeBrowser);

async function press(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name, exact: true }).first().click();
}

async function giveReason(page: Page, reason: string): Promise<void> {
  await page.getByLabel('Reason, for the audit log').fill(reason);
}

browserTest(
  'rolling back, resetting a counter and lifting its limit need no mouse, and a lift can be ended on the page for trying requests',
  async (t) => {
    const served = await startConsole(t, { 'd.yaml': sampleRules });
    const { plane } = served;
    const [first] = (await plane.fetch('/revisions')).body.revisions;
    served.rules.replace('d.yaml', sampleRules.replace('per_unit: 3', 'per_unit: 4'));
    await eventually('two revisions', async () => {
      return (await plane.fetch('/revisions')).body.revisions.length === 2;
    });
    const worker = await startFed(t, served, 'w-1');
    for (let count = 0; count < 6; count++) await worker.decide('customer=ada');

    const { page } = await visit(t, served, 'revisions');
    await page.getByText('What changed').first().waitFor();
    await tabTo(page, `Roll back to ${first.id.slice(0, 12)}`);
    await page.keyboard.press('Enter');
    await page.getByText('3 per year').first().waitFor();
    const violations = await observe(page, 'dialog-roll-back');
    await tabTo(page, 'Reason, for the audit log');
    await page.keyboard.type('the limit was right');
    await page.keyboard.press('Enter');
    await eventually('the old limit is in force', async () => {
      const { body } = await plane.fetch('/rules/d');
      return body.rules[0].limits[0] === '3 per year';
    });
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await audited({ plane }, /audit: roll back to [0-9a-f]{12}: the limit was right: done/);

    await page.goto(consoleUrl(plane, 'limited'));
    await page.getByText('customer=ada').waitFor();
    await tabTo(page, 'Reset the counter of customer=ada');
    await page.keyboard.press('Enter');
    await tabTo(page, 'Reason, for the audit log');
    await page.keyboard.type('a good customer');
    await tabTo(page, 'Reset');
    await page.keyboard.press('Enter');
    await page.getByText('The counter is reset').waitFor();
    await shows(page.getByRole('dialog'), /0 of 3 per year/);
    violations.push(...(await observe(page, 'dialog-reset')));
    t.like(await worker.decide('customer=ada'), { status: 200 });
    await audited(
      { plane },
      /reset counters of \(customer=ada\) of domain d: a good customer: done/,
    );
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor({ state: 'detached' });

    for (let count = 0; count < 6; count++) await worker.decide('customer=ada');
    await tabTo(page, 'Lift the limit of customer=ada');
    await page.keyboard.press('Enter');
    await page.getByLabel('How long').selectOption('4h');
    await giveReason(page, 'a demo');
    violations.push(...(await observe(page, 'dialog-lift')));
    const alignment = await page.evaluate(
      "getComputedStyle(document.querySelector('dialog[open]')).textAlign",
    );
    t.is(alignment, 'left', 'also in a cell of a table, which is aligned otherwise');
    await press(page, 'Lift');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.getByText('lifted until').first().waitFor();
    await eventually('ada is let through', async () => {
      return (await worker.decide('customer=ada')).status === 200;
    });
    await audited({ plane }, /audit: lift d\.customer_ada until \S+: a demo: done/);
    await page.goto(consoleUrl(plane, 'rules'));
    await page
      .getByText(/until 20\d\d-/)
      .first()
      .waitFor();

    await page.goto(consoleUrl(plane, 'try?domain=d&descriptor=customer=ada'));
    await page.getByText(/: nothing is counted\.$/).waitFor();
    violations.push(...(await observe(page, 'try-lifted')));
    await press(page, 'Lift the limit of customer=ada');
    await page.getByLabel('How long').selectOption('');
    await giveReason(page, 'it is over');
    await press(page, 'End the lift');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await eventually('ada is refused again', async () => {
      return (await worker.decide('customer=ada')).status === 429;
    });
    t.deepEqual(violations, []);
  },
);

/** ann may read, bob may write. */
function writeTokens(t: ExecutionContext): string {
  const folder = createRulesFolder(t).path;
  const file = join(folder, 'tokens');
  writeFileSync(file, 'ann read token-of-ann-0123456789\nbob write token-of-bob-0123456789\n');
  return file;
}

browserTest(
  'a token is required, is stored only in the tab, and decides which actions are possible',
  async (t) => {
    const served = await startConsole(
      t,
      { 'd.yaml': sampleRules },
      '--admin-tokens-file',
      writeTokens(t),
    );
    const { page, context, requests } = await visit(t, served, 'revisions');
    const token = page.getByLabel('Token of the admin API');
    await token.fill('an-unknown-token-0123456789');
    await press(page, 'Sign in');
    await page.getByText('Unknown token.').waitFor();
    const violations = await observe(page, 'login');
    await token.fill('token-of-ann-0123456789');
    await press(page, 'Sign in');
    await page.getByText('ann, may read').waitFor();
    t.deepEqual(
      requests.filter((address) => address.includes('token-of')),
      [],
    );
    t.is(await page.evaluate('JSON.stringify(localStorage)'), '{}');

    served.rules.replace('d.yaml', sampleRules.replace('per_unit: 3', 'per_unit: 4'));
    const rollBack = page.getByRole('button', { name: /^Roll back to/ });
    await rollBack.waitFor();
    t.true(await rollBack.isDisabled());
    t.is(await rollBack.getAttribute('title'), 'the token ann can only read');
    await page.reload();
    await page.getByText('ann, may read').waitFor();
    const other = await context.newPage();
    await other.goto(consoleUrl(served.plane, ''));
    await other.getByLabel('Token of the admin API').waitFor();

    await press(page, 'Sign out');
    await token.fill('token-of-bob-0123456789');
    await press(page, 'Sign in');
    await page.getByText('bob, may write').waitFor();
    await rollBack.click();
    await giveReason(page, 'too many');
    served.rules.replace('d.yaml', sampleRules.replace('per_unit: 3', 'per_unit: 5'));
    await eventually('another operator was quicker', async () => {
      const answer = await served.plane.fetch('/rules/d', {
        headers: { authorization: 'Bearer token-of-ann-0123456789' },
      });
      return answer.body.rules[0].limits[0] === '5 per year';
    });
    t.deepEqual(violations, []);
  },
);

browserTest('a held-back revision is approved with a reason', async (t) => {
  const many = Array.from(
    { length: 12 },
    (_, index) => `  - key: k${index}\n    rate_limit: { unit: year, requests_per_unit: 3 }\n`,
  );
  const served = await startConsole(t, { 'd.yaml': `domain: d\ndescriptors:\n${many.join('')}` });
  served.rules.replace('d.yaml', `domain: d\ndescriptors:\n${many[0]}`);
  const { page } = await visit(t, served, 'revisions');
  await page.getByText('A revision is held back').waitFor();
  const violations = await observe(page, 'held-back');
  await press(page, 'Approve…');
  await giveReason(page, 'they moved away');
  await press(page, 'Approve');
  await page.getByText('A revision is held back').waitFor({ state: 'detached' });
  t.is((await served.plane.fetch('/rules/d')).body.total, 1);
  await audited(served, /audit: approve revision [0-9a-f]{12}: they moved away: done/);
  t.deepEqual(violations, []);
});

browserTest('a rollout is paused, resumed and taken back', async (t) => {
  const served = await startConsole(
    t,
    { 'd.yaml': sampleRules },
    '--rollout',
    'canary=50%,hold=1h',
  );
  for (const id of ['w-1', 'w-2']) await startFed(t, served, id);
  served.rules.replace('d.yaml', sampleRules.replace('per_unit: 3', 'per_unit: 4'));
  const { page } = await visit(t, served, 'revisions');
  await page.getByText('1 of 1 worker has it, 1 other does not', { exact: true }).waitFor();
  await shows(
    page,
    /With it 1 worker .* w-[12] … on trial Without it 1 worker .* w-[12] ✓ in force/,
  );
  await shows(page, /50 %, 60 min all/);
  await shows(page, /What changes 3 per year -> 4 per year/);
  const violations = await observe(page, 'rollout');
  const doWith = async (button: string, reason: string) => {
    await press(page, `${button}…`);
    await giveReason(page, reason);
    await press(page, button);
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  };
  await doWith('Pause', 'lunch');
  await page.getByRole('button', { name: 'Resume…' }).waitFor();
  await doWith('Resume', 'lunch is over');
  await page.getByRole('button', { name: 'Pause…' }).waitFor();
  await doWith('Undo', 'too many complaints');
  await page.getByText('The newest revision is not served').waitFor();
  t.like((await served.plane.fetch('/status')).body, { verdict: 'taken_back', rollout: null });
  violations.push(...(await observe(page, 'taken-back')));
  t.deepEqual(violations, []);
});

browserTest('a revision that no share of the workers can receive first is approved', async (t) => {
  const served = await startConsole(
    t,
    { 'd.yaml': sampleRules },
    '--rollout',
    'canary=50%,hold=1h',
  );
  const port = Number(served.plane.xdsAddress.split(':')[1]);
  const workers = ['same', 'same'].map((id) => connectWorker(t, port, id, null));
  await eventually('both have their rules', () => workers.every(({ seen }) => seen.length > 0));
  served.rules.replace('d.yaml', sampleRules.replace('per_unit: 3', 'per_unit: 4'));
  const { page } = await visit(t, served, 'revisions');
  const panel = page.getByRole('region', { name: 'Rollout' });
  await panel.getByText('waits for an approval').waitFor();
  await shows(panel, /No share of the workers can be made|no share of the workers can be made/);
  t.is(await page.getByText('A revision is held back').count(), 0);
  const violations = await observe(page, 'indivisible');
  await press(page, 'Approve…');
  const dialog = page.getByRole('dialog');
  await shows(dialog, /No share of the workers can have it first/);
  await giveReason(page, 'they are copies');
  await press(page, 'Approve');
  await dialog.waitFor({ state: 'detached' });
  await eventually('both have it', () => workers.every(({ seen }) => seen.length === 2));
  await audited(served, /audit: approve revision [0-9a-f]{12}: they are copies: done/);

  await page.getByRole('button', { name: /^Roll back to/ }).click();
  await shows(dialog, /Now of 2 workers .*\.\s+All 2 get what \w{12} has at once, without steps\./);
  t.deepEqual(violations, []);
});

browserTest(
  'an unreadable record of rollouts is reported on the page that the headline links to',
  async (t) => {
    const rules = createRulesFolder(t, { 'd.yaml': sampleRules });
    const state = createRulesFolder(t);
    const record = { store: rules.path, text: '{"format":9}', plane: 'p' };
    state.write('rollout.json', JSON.stringify(record));
    const flags = ['--config-dir', rules.path, '--rollout', 'canary=50%,hold=1h'];
    const plane = await createControlPlaneProcess(t, { flags, stateDirectory: state.path });
    // The control plane is not ready: it must not serve anything before an operator has checked the record.
    plane.begin();
    await eventually('its ports are open', () => plane.output().includes('Workers are served'));
    const { page } = await visit(t, { plane, rules }, 'fleet');
    await page.getByRole('link', { name: 'Details' }).click();
    await shows(page, /^Revisions .*The record of rollouts and approvals is not shared/);
    await shows(page, /it is of a newer version \(format 9\)/);
    t.deepEqual(await observe(page, 'record'), []);
  },
);
