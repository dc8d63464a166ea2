// `helm test --logs` against an API server: the test's pod runs against running programs, and Helm reports its result
// and its log.
import { execFile } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { createChartRelease, startPrograms } from '../support/chart-release.ts';
import { createStandIns } from '../support/chart-stand-ins.ts';
import { eventually } from '../support/eventually.ts';
import { runTool, testWith } from '../support/installed-tool.ts';
import { adminToken, startKubernetesApiServer } from '../support/kubernetes-api-server.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { chartFolder, type Manifest } from '../support/rendered-chart.ts';
import { type ContainerEnd, startSmallKubelet } from '../support/small-kubelet.ts';

const containerMs = 120_000;

testWith(
  test,
  'helm',
  'chart-check',
)(
  'helm test --logs ends with 0 where the release works, and else with 1, and its log names what does not',
  async (t) => {
    t.timeout(600_000);
    const api = await startKubernetesApiServer(t, []);
    await api.call('POST', '/api/v1/namespaces', { metadata: { name: 'limits' } });
    const redis = await startRedisServer(t);
    const values = { worker: { settings: { KVSTORE_URL: `localhost:${redis.port}` } } };
    const release = await createChartRelease(t, values);
    const { ports, folder } = release;
    const standIns = createStandIns(folder);
    const here = { PORT: ports.http, GRPC_PORT: ports.grpc, DEBUG_PORT: ports.debug };
    const all = { worker: { settings: { ...values.worker.settings, ...here } } };
    const files = { ca: join(folder, 'api.crt'), values: join(folder, 'values.json') };
    writeFileSync(files.ca, api.ca);
    writeFileSync(files.values, JSON.stringify(all));
    const helm = (...args: readonly string[]) =>
      runTool('helm', [
        ...args,
        ...['--namespace', 'limits', '--kube-apiserver', `https://127.0.0.1:${api.port}`],
        ...['--kube-token', adminToken, '--kube-ca-file', files.ca],
      ]);
    await startSmallKubelet(t, api, 'limits', (container: Manifest) => {
      const [command = '', ...args] = [...container.command, ...container.args].map(
        release.install,
      );
      const env = { ...standIns.environment, ...release.environmentOf(container) };
      return new Promise<ContainerEnd>((resolve) => {
        execFile(command, args, { env, timeout: containerMs }, (error, stdout, stderr) => {
          resolve({ code: error?.code ?? (error ? 'killed' : 0), output: `${stdout}${stderr}` });
        });
      });
    });
    const installed = await helm('install', 'sample', copyChart(folder), '--values', files.values);
    t.is(installed.code, 0, installed.output);

    const failed = await helm('test', 'sample', '--logs');
    t.is(failed.code, 1, failed.output);
    const asked = `is a worker listening at localhost:${ports.grpc}? choose another address with -dial_string`;
    t.true(failed.output.includes(asked), failed.output);

    const written = await startPrograms(t, release);
    await eventually(
      'the worker is ready',
      () => release.isPassed('worker', 'readinessProbe'),
      60_000,
    );
    const passed = await helm('test', 'sample', '--logs');
    t.is(passed.code, 0, `${passed.output}\n${written()}`);
    t.regex(
      passed.output,
      /POD LOGS.*OK, no limit applies.*is in force on the 1 connected worker/s,
    );
  },
);

/** For any version of Kubernetes: an API server that is built from a module does not know its own version. */
function copyChart(folder: string): string {
  const copy = join(folder, 'chart');
  cpSync(chartFolder, copy, { recursive: true });
  const about = join(copy, 'Chart.yaml');
  writeFileSync(about, readFileSync(about, 'utf8').replace(/^kubeVersion:.*\n/m, ''));
  return copy;
}
