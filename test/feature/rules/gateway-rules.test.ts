// Rules as the documentations of gateways write them, or their control planes generate them: what people have
// already is accepted, and a warning is worth reading.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { runInProcess } from '../../support/command-run.ts';
import { pluck } from '../../support/pluck.ts';

const folder = fileURLToPath(new URL('../../fixtures/rules/gateways/', import.meta.url));
const files = readdirSync(folder).filter((name) => name.endsWith('.yaml'));

/** The warnings that are deserved, with the reason. */
const deserved = new Map([
  // Its only rule is in shadow mode: whoever forgets that limits nobody.
  ['envoy-shadow-trial.yaml', ['shadow-mode-only']],
  // Calls of the storefront have no limit to the ledger, which all other clusters have.
  ['envoy-clusters.yaml', ['freed-value']],
]);

interface Checked {
  readonly problems: readonly { readonly severity: string; readonly rule: string }[];
}

for (const file of files) {
  const expected = deserved.get(file) ?? [];
  const told = expected.length === 0 ? 'without a warning' : `with ${expected.join(' and ')}`;
  test(`${file} is accepted ${told}`, async (t) => {
    const { code, out } = await runInProcess(['check', join(folder, file), '--json']);
    t.is(code, 0, out);
    const { problems } = JSON.parse(out) as Checked;
    const warnings = problems.filter(({ severity }) => severity === 'warning');
    t.deepEqual(pluck(warnings, 'rule'), expected);
  });
}

test('fewer than one of twenty of such files has a warning', (t) => {
  t.true(files.length >= 40);
  t.true(deserved.size * 20 < files.length);
  t.deepEqual(
    [...deserved.keys()].filter((file) => !files.includes(file)),
    [],
  );
});
