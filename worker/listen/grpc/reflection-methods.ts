// Server reflection, with which command-line tools find the services without proto files. It is rarely used, so the
// library and the descriptions are loaded on the first request.
import { readFile } from 'node:fs/promises';
import { ownPath } from '../../../shared/own-files.ts';
import type { GrpcMethod, StreamMethod } from '../../grpc/method.ts';
import { openWhenLoaded } from './lazy-stream.ts';

/** Both published versions of the protocol. */
const paths = ['v1', 'v1alpha'].map(
  (version) => `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`,
);

export function createReflectionMethods(): [path: string, method: GrpcMethod][] {
  let loading: Promise<ReadonlyMap<string, StreamMethod>> | undefined;

  async function load(path: string): Promise<StreamMethod['open']> {
    loading ??= loadAnswers();
    const method = (await loading).get(path);
    if (method === undefined) throw new Error(`${path} is not among the answers`);
    return (caller) => method.open(caller);
  }

  return paths.map((path) => [
    path,
    { kind: 'stream', open: (caller) => openWhenLoaded(caller, load(path), 'reflection') },
  ]);
}

async function loadAnswers(): Promise<ReadonlyMap<string, StreamMethod>> {
  const { createReflectionAnswers } = await import('./reflection-answers.ts');
  const descriptors = await readFile(ownPath('proto/descriptors.json'), 'utf8');
  return createReflectionAnswers(Object.values<string>(JSON.parse(descriptors)));
}
