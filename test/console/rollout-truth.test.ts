// Tests what the pages show during a rollout, with a dead worker, and without a control plane.
import test from 'ava';
import { closeBrowser, observe, openTab, testWithBrowser } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { connectStreamWorker } from '../support/stream-worker.ts';
import {
  audited,
  consoleUrl,
  readPage,
  sampleRules,
  shows,
  startConsole,
  startTrial,
  visit,
} from './console-fixture.ts';

const browserTest = testWithBrowser(test.serial);
test.after.always(closeBrowser);

browserTest('a filter finds values, rules and domains, or reports that it does not', async (t) => {
  const trial = await startTrial(t);
  const { page, complaints } = await visit(t, trial, 'limited?search=bob');
  await shows(page, /2 workers report Nothing matches 'bob'\./);
  t.notRegex(await readPage(page), /No value is limited/);
  const violations = await observe(page, 'limited-nothing-matches');
  for (const found of ['ADA', 'd.customer', 'customer=a']) {
    await page.goto(consoleUrl(trial.plane, `limited?search=${found}`));
    await shows(page, /customer=ada d d\.customer/);
  }
  const others = {
    'fleet?search=zzz': 'zzz',
    'rules?find=yyy': 'yyy',
    'rules?search=xxx': 'xxx',
  };
  for (const [where, sought] of Object.entries(others)) {
    await page.goto(consoleUrl(trial.plane, where));
    await shows(page, new RegExp(`Nothing matches '${sought}'\\.`));
  }
  t.deepEqual(complaints, []);
  t.is(await trial.plane.end('SIGTERM'), 0);
  await page.goto(consoleUrl(trial.plane, 'limited?search=ADA'));
  await shows(page, /What is shown is as of \d\d:\d\d\..* customer=ada/);
  await page.getByLabel('Find a value, a rule or a domain').fill('never asked');
  await shows(page, /The control plane does not answer\./);
  t.notRegex(await readPage(page), /Nothing matches|No value is limited|as of/);
  t.deepEqual(violations, []);
});

browserTest('tile, rows and verdict agree on a rollout, and on a dead worker', async (t) => {
  const trial = await startTrial(t);
  const { page } = await visit(t, trial, 'fleet');
  await shows(page, /Workers 1 of 2 in force, 1 on trial, 1 gone/);
  const { newest, inForce } = (await trial.plane.fetch('/status')).body;
  const [tried, served] = [newest, inForce].map(({ id }) => id.slice(0, 12));
  const text = await readPage(page);
  t.regex(text, new RegExp(`on trial ${tried} `));
  t.regex(text, new RegExp(`in force ${served} `));
  t.regex(
    text,
    /doomed [\d.:]+ ! gone Its connection broke (just now|\d+ s ago), and it has not reconnected/,
  );
  t.regex(text, /Limits 2 in 1 domain/);
  await shows(
    page.locator('.verdict'),
    /pending\s+Revision \w+ is being rolled out: step 1 of 2, 1 of 1 worker has it, 1 other does not/,
  );
  for (const worker of trial.workers) await worker.decide('customer=bob');
  await shows(page, /p99, (at most|above) [\d.,]+ ms 99 % of decisions/);
  const violations = await observe(page, 'trial-fleet');
  await page.getByLabel('State').selectOption('on_trial');
  await shows(page, /1 worker Workers Worker Rules .* on trial/);
  await page.getByLabel('State').selectOption('gone');
  await shows(page, /doomed/);
  t.is(await trial.plane.end('SIGTERM'), 0);
  await shows(page, /What is shown is as of \d\d:\d\d\..*1 of 2 in force, 1 on trial, 1 gone/);
  await shows(
    page.locator('.verdict'),
    /no answer\s+As of \d\d:\d\d: revision \w+ is being rolled out: step 1 of 2, 1 of 1 worker has it, 1 other does not\s+Details\s/,
  );
  violations.push(...(await observe(page, 'trial-fleet-silent')));
  t.deepEqual(violations, []);
});

browserTest('an undo lists who has which revision, and the outcome remains', async (t) => {
  const trial = await startTrial(t);
  const { newest, inForce } = (await trial.plane.fetch('/status')).body;
  const [tried, served] = [newest, inForce].map(({ id }) => id.slice(0, 12));
  const { page } = await visit(t, trial, 'revisions');
  const dialog = page.getByRole('dialog');
  const undo = new RegExp(
    `Now of 2 workers 1 has ${tried} on trial, 1 has ${served} in force\\.\\s+All 2 get what ${served} has at once, without steps, and the rollout of ${tried} ends\\.`,
  );
  await page.getByRole('button', { name: 'Undo…' }).click();
  await shows(dialog, undo);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: `Roll back to ${served}` }).click();
  await shows(dialog, undo);
  const violations = await observe(page, 'trial-dialog-roll-back');
  await page.getByLabel('Reason, for the audit log').fill('too many complaints');
  await dialog.getByRole('button', { name: 'Roll back' }).click();
  const named = `Roll back to ${served}: too many complaints`;
  const list = new RegExp(
    `${served} ✓ in force .* ${named} .*${tried} ! taken back .* Taken back by local, [^:]+: undone by local: ${named}\\.`,
  );
  await shows(page, list);
  await audited(trial, new RegExp(`audit: r${named.slice(1)}(?:; [^:]+)?: done`));
  t.is(await page.getByRole('button', { name: /^Roll back to/ }).count(), 0);
  // The next revision is not compared with the one that was taken back.
  await page
    .getByRole('button', { name: `What changed in ${served}` })
    .first()
    .click();
  await shows(page, /Nothing changes for requests\./);
  violations.push(...(await observe(page, 'revisions-taken-back')));
  t.is(await trial.plane.end('SIGTERM'), 0);
  await trial.plane.start();
  await page.reload();
  await shows(page, list);
  t.deepEqual(violations, []);
});

browserTest(
  'the chart shows its start, labels each minute once, has its values as text, and survives a restart',
  async (t) => {
    const trial = await startTrial(t);
    await eventually('there are slots', async () => {
      return (await trial.plane.fetch('/traffic')).body.slots.length > 2;
    });
    const { page } = await openTab(t);
    await page.addInitScript(`
    globalThis.drawn = [];
    const { clearRect, fillText } = CanvasRenderingContext2D.prototype;
    Object.assign(CanvasRenderingContext2D.prototype, {
      clearRect(...given) { drawn = []; clearRect.apply(this, given); },
      fillText(...given) { drawn.push(given[0]); fillText.apply(this, given); },
    });
  `);
    await page.goto(consoleUrl(trial.plane, 'fleet'));
    await shows(page, /Requests per second, since \d\d:\d\d decisions over limit errors/);
    // The canvas is drawn after the text next to it.
    let labels: string[] = [];
    await eventually('it is drawn', async () => {
      labels = await page.evaluate<string[]>('drawn.filter((text) => text.includes(":"))');
      return labels.length > 0;
    });
    t.deepEqual(labels, [...new Set(labels)]);
    const chart = page.getByRole('img', { name: /^A chart of the requests per second since/ });
    const box = await chart.boundingBox();
    // Minutes that no report covers have no values; the newest have.
    const shown = /second, at \d\d:\d\d:\d\d decisions [\d.]+ over limit [\d.]+ errors 0/;
    await eventually('values are shown', async () => {
      for (const left of [110, 70, 40, 20, 10]) {
        await page.mouse.move((box?.x ?? 0) + (box?.width ?? 0) - left, (box?.y ?? 0) + 60);
        if (shown.test(await readPage(page))) return true;
      }
      return false;
    });
    const violations = await observe(page, 'trial-chart');
    await page.mouse.move(0, 0);
    const [, since] = /since (\d\d:\d\d)/.exec(await readPage(page)) ?? [];
    t.is(await trial.plane.end('SIGTERM'), 0);
    await shows(
      page,
      new RegExp(`What is shown is as of \\d\\d:\\d\\d\\..*per second, since ${since} `),
    );
    await trial.plane.start();
    await page.reload();
    await shows(page, new RegExp(`^(?!.*as of \\d\\d:).*per second, since ${since} `));
    t.deepEqual(violations, []);
  },
);

browserTest('a refusal is red, and shows how many workers refuse', async (t) => {
  const trial = await startConsole(t, { 'd.yaml': sampleRules });
  const { xdsAddress: address } = trial.plane;
  for (const id of ['a', 'b', 'c'])
    connectStreamWorker(t, { address, id, answer: id === 'b' ? () => 'refuse' : () => 'take' });
  const { page } = await visit(t, trial, 'fleet');
  const verdict = page.locator('.verdict');
  await verdict.getByText('is refused by 1 of 3 workers and in force on 2; b reports:').waitFor();
  await shows(verdict.locator('.badge.bad'), /refused/);
  t.deepEqual(await observe(page, 'fleet-refused'), []);
});

const shadowRules = `domain: d
descriptors:
  - {key: watched, shadow_mode: true, rate_limit: { unit: year, requests_per_unit: 2 }}
`;

browserTest('trying a request shows its outcome first; shadow mode refuses nothing', async (t) => {
  const trial = await startTrial(t, shadowRules.replace('domain: d\ndescriptors:\n', ''));
  for (const worker of trial.workers)
    for (let count = 0; count < 6; count++) await worker.decide('watched=ada');
  const { page } = await visit(t, trial, 'try?domain=d&descriptor=watched%3Dada');
  const result = page.getByRole('region', { name: 'Result' });
  await shows(
    page,
    /Passes: shadow mode, would be refused: 6 of 2 a year, free again in (\d+ d( \d+ h)?|\d+ h( \d+ min)?|\d+ min|\d+ s)\. watched=ada The limit of 'watched'/,
  );
  t.is(await result.locator('.notice.bad, .loud').count(), 0);
  await shows(
    result,
    /shadow mode: over, not refused\s+free again in (\d+ d|\d+ h|\d+ min|\d+ s)\b/,
  );
  const violations = await observe(page, 'try-shadow');
  await page.goto(consoleUrl(trial.plane, 'why?domain=d&descriptor=customer%3Dada'));
  await shows(page, /on trial 3 per year -> 4 per year, in \w{12}/);
  violations.push(...(await observe(page, 'why-trial')));
  // Of two workers, the one with the revision on trial has a larger limit.
  await page.goto(consoleUrl(trial.plane, 'try?domain=d&descriptor=customer%3Dada'));
  await shows(page, /Refused now \(429\): 6 of [34] a year, free again in \d/);
  violations.push(...(await observe(page, 'try-refused')));
  await page.goto(consoleUrl(trial.plane, 'try?domain=d&descriptor=customer%3Dnew'));
  await shows(page, /! ?Passes\.|✓ ?Passes\./);
  for (const where of ['rules?domain=d', 'limited?search=watched']) {
    await page.goto(consoleUrl(trial.plane, where));
    const row = page.locator('tr', { hasText: 'watched' }).first();
    await eventually('its hits are reported', async () => {
      return /[1-9]/.test(await row.locator('td.number').last().innerText());
    });
    await shows(row, /shadow mode/);
    t.is(await row.locator('.loud, .over').count(), 0, where);
  }
  violations.push(...(await observe(page, 'limited-shadow')));
  await page.goto(consoleUrl(trial.plane, 'try?domain=d&descriptor=customer%3Dada'));
  await shows(page, /Refused now/);
  t.is(await trial.plane.end('SIGTERM'), 0);
  await shows(page, /What is shown is as of \d\d:\d\d\..*Refused now \(429\)/);
  t.deepEqual(violations, []);
});
