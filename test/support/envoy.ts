// A real Envoy for a test: starts it with a configuration, waits for it, and ends it.
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { endWithUs } from './end-with-us.ts';
import { findTool } from './installed-tool.ts';
import type { Owner } from './owner.ts';
import { waitUntil } from './wait-until.ts';

export interface Envoy {
  /** Its output so far, for the message of a failing test. */
  output(): string;
  stop(): Promise<void>;
}

const startTimeoutMs = 60_000;
const stopTimeoutMs = 20_000;

/** The test set-up installs it if possible. */
function findEnvoy(): string {
  const path = findTool('envoy');
  if (path === undefined) throw new Error('there is no envoy');
  return path;
}

/** `yaml` must listen on `port` of the loopback; resolves when that answers. */
export async function startEnvoy(t: Owner, yaml: string, port: number): Promise<Envoy> {
  const folder = await mkdtemp(join(tmpdir(), 'ratelane-envoy-'));
  const file = join(folder, 'envoy.yaml');
  await writeFile(file, yaml);
  const child = spawn(
    findEnvoy(),
    ['-c', file, '--log-level', 'warning', '--concurrency', '1', '--use-dynamic-base-id'],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  endWithUs(child);
  let output = '';
  let ended = false;
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output = (output + chunk).slice(-100_000);
    });
  }
  const end = new Promise<void>((resolve) => {
    child.once('close', () => {
      ended = true;
      resolve();
    });
  });
  const stop = async () => {
    child.kill('SIGTERM');
    const kill = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs);
    if (!ended) await end;
    clearTimeout(kill);
    await rm(folder, { recursive: true, force: true });
  };
  const isAnswering = async () => {
    if (ended) throw new Error(`envoy ended: ${output}`);
    try {
      await (await fetch(`http://127.0.0.1:${port}/`)).body?.cancel();
      return true;
    } catch {
      return false;
    }
  };
  try {
    if (!(await waitUntil(isAnswering, startTimeoutMs))) {
      throw new Error(`envoy did not answer: ${output}`);
    }
  } catch (error) {
    await stop();
    throw error;
  }
  t.teardown(stop);
  return { output: () => output, stop };
}
