// Tests `check --envoy`, which compares rules with an Envoy configuration, as text: check-envoy.txt.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { runInProcess } from '../../support/command-run.ts';
import { pluck } from '../../support/pluck.ts';
import { createRulesFolder } from '../../support/rules-folder.ts';
import { testScenarios } from '../../support/scenarios.ts';

const http = 'type.googleapis.com/envoy.extensions.filters';

/** `bucket`: the entries of a bucket's id; '' for no filter. */
function quotaOf(bucket: string): string {
  if (bucket === '') return '{}';
  const type = `${http}.http.rate_limit_quota.v3`;
  const settings = `{"@type": ${type}.RateLimitQuotaBucketSettings, bucket_id_builder: {bucket_id_builder: {${bucket}}}}`;
  return `{"@type": ${type}.RateLimitQuotaFilterConfig, domain: shop, bucket_matchers: {on_no_match: {action: {typed_config: ${settings}}}}}`;
}

/** Parts of a scenario, in YAML's flow style: limits of the virtual host, its routes, the filter's fields, and a
 * replacement for the routes. */
function writeEnvoy(folder: string): void {
  const read = (name: string, otherwise: string) => {
    const path = join(folder, name);
    return existsSync(path) ? readFileSync(path, 'utf8').trim() : otherwise;
  };
  const own = `route_config:
            virtual_hosts:
              - name: shop
                domains: ["*"]
                routes: [${read('routes', '{match: {prefix: /}, route: {cluster: shop}}')}]
                rate_limits: [
                  ${read('host', '').replaceAll('\n', '\n                  ')}
                ]`;
  writeFileSync(
    join(folder, 'envoy.yaml'),
    `static_resources:
  listeners:
  - filter_chains:
    - filters:
      - typed_config:
          "@type": ${http}.network.http_connection_manager.v3.HttpConnectionManager
          ${read('rds', own)}
          http_filters:
            ${read('before', '')}
            - name: limit
              typed_config: {"@type": ${http}.http.ratelimit.v3.RateLimit, ${read('filter', 'domain: shop')}}
            - name: quota
              typed_config: ${quotaOf(read('bucket', ''))}
            ${read('behind', '')}
`,
  );
}

testScenarios(test, new URL('check-envoy.txt', import.meta.url), (words, { folder }) => {
  writeEnvoy(folder);
  return runInProcess(words);
});

test('hostile files are bounded in time and output', async (t) => {
  const { path, write } = createRulesFolder(t);
  const many = Array.from(
    { length: 12_000 },
    (_, index) => `{actions: [{generic_key: {descriptor_value: v${index}}}]}`,
  );
  write('host', many.join(',\n'));
  writeEnvoy(path);
  mkdirSync(join(path, 'rules'));
  write(
    'rules/shop.yaml',
    'domain: shop\ndescriptors: [{key: k, rate_limit: {unlimited: true}}]\n',
  );
  const check = async (name: string) => {
    const args = ['check', join(path, 'rules'), '--envoy', join(path, name), '--json'];
    return JSON.parse((await runInProcess(args)).out).problems as { rule: string }[];
  };
  const { length } = await check('envoy.yaml');
  t.true(length > 90 && length <= 105, `${length}`);
  write('deep.yaml', `static_resources: ${'['.repeat(5_000)}${']'.repeat(5_000)}\n`);
  t.deepEqual(pluck(await check('deep.yaml'), 'rule'), ['too-large']);
});
