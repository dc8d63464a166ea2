// The sample Envoy configuration for operators, with the addresses of a test.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

const file = join(import.meta.dirname, '..', '..', 'compose', 'envoy', 'envoy.yaml');

export interface SampleAddresses {
  readonly port: number;
  readonly shopPort: number;
  readonly workerPorts: readonly number[];
}

/** `changes` are texts of the sample and their replacements; each text must occur. */
export async function readEnvoySample(
  { port, shopPort, workerPorts }: SampleAddresses,
  changes: readonly (readonly [text: string, replacement: string])[] = [],
): Promise<string> {
  let text = await readFile(file, 'utf8');
  const worker = /- endpoint:\s+address:\s+socket_address: \{ address: worker, port_value: 8081 \}/;
  const [endpoint] = worker.exec(text) ?? [''];
  const endpoints = workerPorts.map(
    (workerPort) =>
      `- endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: ${workerPort} } } }`,
  );
  for (const [from, to] of [
    ['address: 0.0.0.0, port_value: 10000', `address: 127.0.0.1, port_value: ${port}`],
    ['port_value: 10001', `port_value: ${shopPort}`],
    [endpoint, endpoints.join(`\n${' '.repeat(14)}`)],
    ...changes,
  ] as const) {
    if (from === '' || !text.includes(from)) throw new Error(`the sample has no longer: ${from}`);
    text = text.replaceAll(from, to);
  }
  return text;
}

/** For a busy machine: its delays must not be mistaken for unreachable workers. */
export const generousTimes = [
  ['timeout: 0.25s', 'timeout: 10s'],
  ['max_interval: 0.25s', 'max_interval: 10s'],
  ['connect_timeout: 0.1s', 'connect_timeout: 5s'],
  // Timeouts of the health checks.
  ['- timeout: 1s', '- timeout: 10s'],
] as const;
