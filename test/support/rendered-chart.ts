// The Helm chart with some values, rendered by Helm for the release "sample" in the namespace "limits".
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { parseAllDocuments } from 'yaml';
import { runTool, type ToolRun } from './installed-tool.ts';
import { createTemporaryFolder } from './temporary-folder.ts';

// biome-ignore lint/suspicious/noExplicitAny: manifests of many kinds
export type Manifest = any;

export const chartFolder = join(import.meta.dirname, '..', '..', 'compose', 'helm', 'ratelane');

/** `existing` are the objects that lookups find in the cluster. The output has the manifests, and NOTES.txt as
 * comments. */
export function renderChart(
  t: ExecutionContext,
  values: object,
  existing?: Manifest,
): Promise<ToolRun> {
  const folder = createTemporaryFolder(t);
  const [valuesFile, existingFile] = [join(folder, 'values.json'), join(folder, 'existing.json')];
  writeFileSync(valuesFile, JSON.stringify(values));
  if (existing !== undefined) writeFileSync(existingFile, JSON.stringify(existing));
  const files = existing === undefined ? [valuesFile] : [valuesFile, existingFile];
  return runTool('chart-check', [chartFolder, ...files]);
}

export function readManifests(output: string): Manifest[] {
  return parseAllDocuments(output)
    .map((document): Manifest => document.toJS())
    .filter((manifest) => manifest !== null);
}

/** Helm's output after the installation. */
export function readNotes(output: string): string {
  return output.slice(0, output.indexOf('\n---\n')).replaceAll(/^# /gm, '');
}

/** By name and key. */
export type Secrets = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** Values from the pod itself exist only when it runs, except the API server's address. */
export function environmentOf({ spec }: Manifest, secrets: Secrets = {}): Record<string, string> {
  const rows: Manifest[] = spec.containers[0].env;
  return {
    ...(spec.automountServiceAccountToken && { KUBERNETES_SERVICE_HOST: '10.0.0.1' }),
    ...Object.fromEntries(rows.map((row) => [row.name, readVariable(row, secrets)])),
  };
}

export function readVariable({ value, valueFrom }: Manifest, secrets: Secrets): string {
  const { secretKeyRef } = valueFrom ?? {};
  const referred = secretKeyRef ? secrets[secretKeyRef.name]?.[secretKeyRef.key] : 'a-pod';
  return value ?? referred;
}

export function isPartOf(part: Record<string, string>, whole: Record<string, string>): boolean {
  return Object.entries(part).every(([key, value]) => whole[key] === value);
}
