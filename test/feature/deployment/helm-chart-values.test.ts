// Tests the effect of the Helm chart's values, as text: helm-chart-values.txt. helm-chart.test.ts tests that manifests
// fit together, and how programs read them.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext, type TestFn } from 'ava';
import { parse, stringify } from 'yaml';
import { parseControlPlaneSettings } from '../../../control-plane/server/settings.ts';
import { parseWorkerSettings } from '../../../worker/settings.ts';
import { testWith } from '../../support/installed-tool.ts';
import {
  environmentOf,
  type Manifest,
  readManifests,
  readNotes,
  renderChart,
} from '../../support/rendered-chart.ts';
import { type Outcome, testScenarios } from '../../support/scenarios.ts';

const shapes: Readonly<Record<string, Manifest>> = parse(
  readFileSync(new URL('../../fixtures/chart/shapes.yaml', import.meta.url), 'utf8'),
);
/** What programs read from Secrets instead of a value. */
const secrets = { chat: { url: 'https://chat.example/hooks/its-secret' } };
const parsers = { worker: parseWorkerSettings, 'control-plane': parseControlPlaneSettings };

/** The value at `a.b[0].c[name=x]` of a manifest, with `[*]` for each item and `[a.b/c]` for a key with dots. */
function lookUp(manifest: Manifest, path: string): Manifest {
  let found: Manifest[] = [manifest];
  for (const [, key, item = ''] of path.matchAll(/([^.[\]]+)|\[([^\]]+)\]/g)) {
    const [, name = '', wanted] = /^(\w+)=(.*)$/.exec(item) ?? [];
    found = found.flatMap((each) => {
      if (key !== undefined) return [each?.[key]];
      if (item === '*') return each ?? [];
      if (wanted !== undefined) return each?.filter((one: Manifest) => one[name] === wanted);
      return [Array.isArray(each) ? each.at(Number(item)) : each?.[item]];
    });
  }
  return path.includes('[*]') ? found : found[0];
}

/** A pod of a program, by its name, or a manifest by `Kind/name`. */
function find(manifests: readonly Manifest[], name: string): Manifest {
  if (name in parsers) {
    const isOf = ({ kind, metadata }: Manifest) =>
      kind === 'Deployment' && metadata.name.endsWith(`-${name}`);
    return manifests.find(isOf)?.spec.template;
  }
  return manifests.find(({ kind, metadata }) => `${kind}/${metadata.name}` === name);
}

/** The value of a variable, and the problems that the program reports in all of its settings. */
function showEnvironment(pod: Manifest, program: string, names: readonly string[]): string[] {
  const environment = environmentOf(pod, secrets);
  const parsed = parsers[program as keyof typeof parsers](environment);
  return [
    ...names.map((name) => (name in environment ? `${name}=${environment[name]}` : `no ${name}`)),
    ...(parsed.ok ? [] : parsed.problems),
  ];
}

/** Where a pod mounts which Secret. */
function showMounts({ spec }: Manifest): string[] {
  return spec.containers[0].volumeMounts.flatMap(({ name, mountPath }: Manifest) => {
    const { secret } = spec.volumes.find((volume: Manifest) => volume.name === name);
    return secret ? [`${mountPath} is Secret ${secret.secretName}`] : [];
  });
}

/** The lines of errors, each once; the schema's own are in no particular order. */
function findErrors(output: string): string {
  const lines = output.replace('[ERROR] values.yaml: ', '').match(/^(?:- |[\w/]+\.[\w.]+: ).*$/gm);
  return [...new Set(lines)].sort().join('\n');
}

async function run(
  t: ExecutionContext,
  folder: string,
  [command = '', ...words]: readonly string[],
): Promise<Outcome> {
  const file = join(folder, 'values.yaml');
  if (command === 'shape') {
    writeFileSync(file, stringify(shapes[words[0] ?? '']));
    return { out: '' };
  }
  const values = existsSync(file) ? parse(readFileSync(file, 'utf8')) : {};
  const { code, output } = await renderChart(t, values ?? {});
  if (code !== 0) return { out: '', err: findErrors(output), code: 1 };
  const manifests = readManifests(output);
  const lines: string[] = [];
  if (command === 'notes') {
    const [text = ''] = words;
    lines.push(
      ...readNotes(output)
        .split('\n')
        .filter((line) => line.includes(text)),
    );
  } else if (command === 'kinds') {
    lines.push(...manifests.map(({ kind, metadata }) => `${kind}/${metadata.name}`).sort());
  } else if (command === 'env') {
    const [program = '', ...names] = words;
    lines.push(...showEnvironment(find(manifests, program), program, names));
  } else if (command === 'mounts') {
    lines.push(...showMounts(find(manifests, words[0] ?? '')));
  } else {
    for (const path of words) {
      const value =
        command === 'all'
          ? [...new Set(manifests.flatMap((each) => lookUp(each, path) ?? []))]
          : lookUp(find(manifests, command), path);
      const text = stringify(value ?? 'nothing', { lineWidth: 0 }).trimEnd();
      lines.push(typeof value === 'object' ? `${path}:\n${text.replace(/^/gm, '  ')}` : text);
    }
  }
  return { out: lines.join('\n') || 'nothing' };
}

testScenarios(
  testWith(test, 'chart-check') as TestFn,
  new URL('helm-chart-values.txt', import.meta.url),
  (words, { t, folder }) => run(t, folder, words),
);
