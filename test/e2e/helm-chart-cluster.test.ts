// The Helm chart on an API server, in a namespace that enforces the pod security standard "restricted". This proves
// more than a test without one, such as that every value is valid and no name is too long.
import { readFileSync } from 'node:fs';
import test from 'ava';
import { parse } from 'yaml';
import { testWith } from '../support/installed-tool.ts';
import {
  type KubernetesApiServer,
  startKubernetesApiServer,
} from '../support/kubernetes-api-server.ts';
import { ownedByFile } from '../support/owner.ts';
import { type Manifest, readManifests, renderChart } from '../support/rendered-chart.ts';

const shapes: Readonly<Record<string, Manifest>> = parse(
  readFileSync(new URL('../fixtures/chart/shapes.yaml', import.meta.url), 'utf8'),
);
/** Kinds that a cluster has only with the Prometheus operator. */
const foreign = ['ServiceMonitor', 'PrometheusRule'];
const plurals: Readonly<Record<string, string>> = {
  Ingress: 'ingresses',
  NetworkPolicy: 'networkpolicies',
};
const owner = ownedByFile(test);
let server: KubernetesApiServer;

test.before(async () => {
  server = await startKubernetesApiServer(owner, []);
  const labels = Object.fromEntries(
    ['enforce', 'warn'].map((mode) => [`pod-security.kubernetes.io/${mode}`, 'restricted']),
  );
  await server.call('POST', '/api/v1/namespaces', { metadata: { name: 'limits', labels } });
});

for (const [title, values] of Object.entries(shapes)) {
  testWith(test.serial, 'chart-check')(`a cluster takes the chart ${title}`, async (t) => {
    const { code, output } = await renderChart(t, values);
    t.is(code, 0, output);
    for (const manifest of readManifests(output)) {
      const { apiVersion, kind, metadata } = manifest;
      if (foreign.includes(kind)) continue;
      t.is(metadata.namespace, 'limits', `${kind} ${metadata.name}`);
      const api = apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`;
      const plural = plurals[kind] ?? `${kind.toLowerCase()}s`;
      const path = `${api}/namespaces/limits/${plural}?dryRun=All&fieldValidation=Strict`;
      await t.notThrowsAsync(server.call('POST', path, manifest), `${kind} ${metadata.name}`);
    }
  });
}
