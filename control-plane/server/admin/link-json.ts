// Links that no rollout is judged by, in the format of the admin API, each with the reason. Pure.
import Type from 'typebox';
import type { LinkedWorker } from '../fleet/fleet.ts';
import type { ConnectedWorker } from '../xds/workers.ts';

export const linkJson = Type.Object(
  {
    id: Type.String(),
    instance: Type.String(),
    address: Type.String(),
    problem: Type.String({ description: 'Why no rollout is judged by it' }),
  },
  { title: 'UnjudgedLink' },
);
export type LinkJson = Type.Static<typeof linkJson>;

const maxShownId = 200;

/** The links without a stream of rules of the same instance and node id. */
export function toLinksJson(
  linked: readonly LinkedWorker[],
  workers: readonly Pick<ConnectedWorker, 'node' | 'instance'>[],
): LinkJson[] {
  const idOf = new Map(workers.map(({ node, instance }) => [instance, node.id]));
  return linked.flatMap(({ hello, address }) => {
    const problem = findStreamProblem(hello.nodeId, idOf.get(hello.instance));
    if (problem === undefined) return [];
    return [{ id: hello.nodeId, instance: hello.instance, address, problem }];
  });
}

/** `streamId` is the node id of the instance's stream of rules; undefined without one. */
function findStreamProblem(nodeId: string, streamId: string | undefined): string | undefined {
  if (streamId === undefined) return 'no worker of this instance takes its rules here';
  if (streamId === nodeId) return undefined;
  return `the worker of this instance takes its rules as node '${streamId.slice(0, maxShownId)}'`;
}
