// `check --envoy` predicts what Envoy sends; here a real Envoy sends every kind of action to a worker, whose page of
// unmatched descriptors shows what arrived.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { readEnvoyQuestions } from '../../control-plane/authoring/envoy/envoy-config.ts';
import { parseYamlTree } from '../../shared/rules/yaml/yaml-tree.ts';
import { startEnvoy } from '../support/envoy.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { startWorkerProcess } from '../support/worker-process.ts';

/** Unsigned: Envoy leaves verification to its JWT filter. */
const token = [{ alg: 'RS256' }, { sub: 'ada' }, 'signature']
  .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
  .join('.');
const fixture = join(import.meta.dirname, '..', 'fixtures', 'envoy', 'every-action.yaml');

/** The descriptors that `check` expects this Envoy to send: the keys in order, and the known values. */
function readExpected(yaml: string) {
  const { root, reporter } = parseYamlTree(yaml, 'envoy.yaml');
  if (root === undefined) throw new Error(JSON.stringify(reporter.toProblems()));
  const { descriptors, isComplete, unsent } = readEnvoyQuestions([{ root, reporter }]);
  return { descriptors, isComplete, unsent };
}

test('Envoy sends what check expects it to send', async (t) => {
  const yaml = await readFile(fixture, 'utf8');
  const { descriptors, isComplete, unsent } = readExpected(yaml);
  t.true(isComplete);
  t.is(unsent.length, 1, 'of another stage');
  const rule = 'descriptors:\n  - {key: none, rate_limit: {unit: year, requests_per_unit: 1}}\n';
  const worker = await startWorkerProcess(t, {
    env: { BACKEND_TYPE: 'memory' },
    rules: { 'shop.yaml': `domain: shop\n${rule}`, 'other.yaml': `domain: other\n${rule}` },
  });
  const port = await freePort();
  await startEnvoy(
    t,
    yaml.replace('LISTEN_PORT', `${port}`).replace('WORKER_PORT', `${worker.ports.grpc}`),
    port,
  );

  const expected = descriptors
    // Without the header, there is no such descriptor, or no such entry.
    .filter(({ entries }) => entries[0]?.key !== 'never')
    .map(({ domain, entries }) => ({ domain, entries: entries.filter((e) => !e.isOptional) }));
  t.is(expected.length, 18);
  const readPage = async () => {
    for (const path of ['/?q=1', '/per-route']) {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
        headers: { 'x-customer': 'ada', authorization: `Bearer ${token}` },
        signal: AbortSignal.timeout(60_000),
      });
      await answer.body?.cancel();
    }
    const url = `http://127.0.0.1:${worker.ports.debug}/unmatched`;
    return (await fetch(url, { signal: AbortSignal.timeout(60_000) })).text();
  };
  const missing = (page: string) => {
    const domains = page.split(/^domain /m);
    return expected.filter(({ domain, entries }) => {
      const part = domains.find((each) => each.startsWith(`${domain}:`)) ?? '';
      const patterns = entries.map(({ key, value }) =>
        value === undefined ? `\\(${key}=[^)]+\\)` : `\\(${key}=${value}\\)`,
      );
      return !new RegExp(`^    ${patterns.join('')}$`, 'm').test(part);
    });
  };
  let page = '';
  await eventually('every descriptor arrived', async () => {
    page = await readPage();
    return missing(page).length === 0;
  }).catch(() => {});
  t.deepEqual(missing(page), [], page);
  t.false(page.includes('of-another-stage'));
  t.false(page.includes('(never'));
});
