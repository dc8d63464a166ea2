// Tests six questions that an operator on call has half a minute for, each in three states of a fleet, answered only
// from what is visible.
import test from 'ava';
import { closeBrowser, observe, openTab, type Page, testWithBrowser } from '../support/browser.ts';
import { consoleUrl, shows } from './console-fixture.ts';
import { startFleetOfFive } from './fleet-of-five.ts';

const browserTest = testWithBrowser(test.serial);
test.after.always(closeBrowser);

async function open(page: Page, name: string): Promise<void> {
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name }).click();
}

/** Each can be asked from any page. */
const questions = {
  async isInForceEverywhere(page: Page, answer: RegExp): Promise<void> {
    await shows(page.getByRole('status').first(), answer);
  },
  async whoRefused(page: Page, answer: RegExp): Promise<void> {
    await open(page, 'Fleet');
    await page.getByLabel('State').selectOption('Refused');
    await shows(page, answer);
  },
  async whoIsLimited(page: Page, answer: RegExp): Promise<void> {
    await open(page, 'Who is limited');
    await shows(page, answer);
  },
  async whatChanged(page: Page, answer: RegExp): Promise<void> {
    await open(page, 'Activity');
    await page.getByLabel('When').selectOption('In the last hour');
    await shows(page, answer);
  },
  /** Types into the box that `/` opens, and chooses the first result. */
  async whyWasThisLimited(page: Page, answer: RegExp): Promise<void> {
    await page.keyboard.press('/');
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('searchbox').fill('ada');
    await dialog
      .getByRole('link', { name: /customer=ada by d\.customer/ })
      .first()
      .waitFor();
    await page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'detached' });
    await shows(page, answer);
  },
  /** `button`: offered by the page of revisions; `what`: its dialog. */
  async howDoIUndo(page: Page, button: RegExp, what: RegExp): Promise<void> {
    await open(page, 'Revisions');
    await page.getByRole('button', { name: button }).first().click();
    await shows(page.getByRole('dialog'), what);
    await page.getByLabel('Reason, for the audit log').fill('it was wrong');
    await page.keyboard.press('Enter');
  },
} as const;

const limited = /customer=ada d d\.customer/;
const why =
  /Refused now \(429\): 6 of 3 a year.* by the rule d\.customer.* Changed last .* by local in \w{12} ada asks too often 30 per year -> 3 per year Change… Undo that change/;

const steps = ['--rollout', 'canary=80%,hold=1h'];

browserTest(
  'in the middle of a rollout: who has it and who refuses it; who is limited, what changed, why, and the way back',
  async (t) => {
    const { plane, change } = await startFleetOfFive(t, ...steps);
    const { page } = await openTab(t);
    await page.goto(consoleUrl(plane, ''));
    await change('free', 'gold', 'a plan for gold');
    await questions.isInForceEverywhere(
      page,
      /refused Revision \w{12} is being rolled out: step 1 of 2, 3 of 4 workers have it, 1 other does not; paused: worker 'plain-\d' refuses it: no such unit; (?:1 other worker|[23] other workers) accepted it Details/,
    );
    await questions.whoRefused(page, /1 worker .* plain-\d .* ! refused no such unit/);
    await questions.whoIsLimited(page, limited);
    await questions.whatChanged(
      page,
      // A revision may be in force before or after the answer to its author is sent.
      /local Put domain d: a plan for gold (?=.*local Put domain d: ada asks too often )(?=.*Revision \w{12} 'ada asks too often' came into force)/,
    );
    await questions.whyWasThisLimited(page, why);
    // Counters with the most use are first, those without an answer last, and all but four are folded.
    await shows(
      page,
      /Counted by w-\d 6 of 3 .* Counted by w-\d 6 of 3 .* Counted by plain-\d ! No answer .* 1 more Reset/,
    );
    await questions.howDoIUndo(
      page,
      /^Undo…$/,
      /All \d get what \w{12} has at once, without steps, and the rollout of \w{12} ends/,
    );
    await questions.isInForceEverywhere(page, /taken back Revision \w{12} was taken back/);
    await questions.whoRefused(page, /0 workers Nothing matches/);
    await questions.whatChanged(page, /was taken back: .*it was wrong/);
    t.deepEqual(await observe(page, 'questions-rollout'), []);
  },
);

browserTest(
  'with a dead worker: on whom it is in force, who refuses it, who is limited, what changed, why, and the way back',
  async (t) => {
    const { plane, change, plain } = await startFleetOfFive(t);
    await change('free', 'gold', 'a plan for gold');
    const { page } = await openTab(t);
    await page.goto(consoleUrl(plane, ''));
    await questions.whoRefused(page, /1 worker .* plain-\d .* ! refused no such unit/);
    plain.find(({ has }) => has('gold'))?.vanish();
    await questions.isInForceEverywhere(
      page,
      /refused This control plane: revision \w{12} is refused by 1 of 3 workers and in force on 2; plain-\d reports: no such unit/,
    );
    await page.getByLabel('State').selectOption('Gone');
    await shows(page, /plain-\d [\d.:]+ ! gone Its connection broke (just now|\d+ s ago)/);
    await questions.whoIsLimited(page, limited);
    await questions.whatChanged(page, /local Put domain d: a plan for gold .*ada asks too often/);
    await questions.whyWasThisLimited(page, why);
    plain.find(({ has }) => !has('gold'))?.vanish();
    await questions.whoRefused(
      page,
      /0 workers, 1 gone .* plain-\d .* ! gone .* It had refused its rules: no such unit/,
    );
    await page.getByRole('link', { name: /^plain-\d$/ }).click();
    await shows(
      page,
      /It is gone, .* It had refused its rules, .*: no such unit .*Gone since \d{4}-/,
    );
    await questions.howDoIUndo(page, /^Roll back to/, /All 3 get what \w{12} has at once/);
    await questions.whatChanged(page, /local Roll back to \w{12}: it was wrong/);
    await questions.isInForceEverywhere(
      page,
      /pending Revision \w{12} is in force on all 3 connected workers, but 2 of 5 workers of the last 5 minutes are gone/,
    );
    t.deepEqual(await observe(page, 'questions-dead-worker'), []);
  },
);

browserTest(
  'without a control plane each page keeps its answer and shows its age; the other control plane has all pages, and a link back',
  async (t) => {
    const { plane, peer, change } = await startFleetOfFive(t);
    await change('free', 'gold', 'a plan for gold');
    const { page } = await openTab(t);
    await page.goto(consoleUrl(plane, ''));
    const isRefused = /is refused by 1 of 4 workers and in force on 3/;
    const refused = /1 worker .* plain-\d .* ! refused no such unit/;
    const both = /a plan for gold.*ada asks too often/;
    await questions.isInForceEverywhere(page, isRefused);
    await questions.whoRefused(page, refused);
    await questions.whoIsLimited(page, limited);
    await questions.whatChanged(page, both);
    await questions.whyWasThisLimited(page, why);
    await open(page, 'Revisions');
    await page
      .getByRole('button', { name: /^Roll back to/ })
      .first()
      .waitFor();

    t.is(await plane.end('SIGTERM'), 0);
    const asOf = (answer: RegExp) =>
      new RegExp(`What is shown is as of \\d\\d:\\d\\d\\..*${answer.source}`);
    await questions.isInForceEverywhere(page, new RegExp(`no answer As of .*${isRefused.source}`));
    await questions.whoRefused(page, asOf(refused));
    await questions.whoIsLimited(page, asOf(limited));
    await questions.whatChanged(page, asOf(both));
    await questions.whyWasThisLimited(page, asOf(why));
    await questions.howDoIUndo(page, /^Roll back to/, /Roll back to \w{12}\?/);
    const dialog = page.getByRole('dialog');
    await dialog
      .getByRole('alert')
      .getByText('Not done: the control plane does not answer.')
      .waitFor();
    const violations = await observe(page, 'questions-silent-undo');
    await page.keyboard.press('Escape');

    // The page names another place where it can be done.
    await page
      .getByRole('link', { name: new URL(peer.adminUrl).host })
      .first()
      .click();
    await page.waitForURL(`${peer.adminUrl}/console/#/revisions`);
    await questions.isInForceEverywhere(page, /not known/);
    await questions.whoIsLimited(page, limited);
    await questions.whatChanged(page, both);
    await questions.whyWasThisLimited(page, why);
    await questions.howDoIUndo(page, /^Roll back to/, /has at once, without steps/);
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await shows(page, /✓ in force .* Roll back to \w{12}: it was wrong/);
    violations.push(...(await observe(page, 'questions-other-plane')));
    t.deepEqual(violations, []);
  },
);
