// Each alert has its section in alerts.md, and each section its alert, so that operators on call find what to do.
// test/feature/output/observability.test.ts tests that each alert links to its section.
import { readFileSync } from 'node:fs';
import test from 'ava';
import { parse } from 'yaml';

interface Alert {
  readonly alert: string;
}

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const { groups } = parse(read('compose/observability/alerts.yaml')) as {
  readonly groups: readonly { readonly rules: readonly Alert[] }[];
};
const alerts = groups.flatMap(({ rules }) => rules);
const page = read('worker/docs/alerts.md');
const sections = [...page.matchAll(/^## (.*)$/gm)].map(([, title]) => title);

test('the alerts and the sections of their page are the same, in the same order', (t) => {
  t.true(alerts.length > 10);
  t.deepEqual(
    sections,
    alerts.map(({ alert }) => alert),
  );
});

test('each section explains what to check and what to do', (t) => {
  for (const section of page.split('\n## ').slice(1)) {
    t.regex(section, /^- Check: /m, section.split('\n')[0]);
    t.regex(section, /^- Do: /m, section.split('\n')[0]);
  }
});
