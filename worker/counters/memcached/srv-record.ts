// Nodes listed by an SRV record (behaviour: memory-cache-nodes).
import type { SrvRecord } from 'node:dns';
import type { HostPort } from '../../../shared/host-port.ts';

/** Looks up a record; rejects, in bounded time, when that fails. */
export type ResolveSrv = (name: string) => Promise<readonly Pick<SrvRecord, 'name' | 'port'>[]>;

/** Whether the text has the form `_service._proto.name`. */
export function isSrvName(text: string): boolean {
  return /^_[\w-][\w.-]*?\._[\w-][\w.-]*?\.[\w.-]+$/.test(text);
}

/**
 * The nodes in the same order on all workers: sorted as the texts `<target>:<port>`, the target with its final dot as
 * in the DNS. Priority and weight are ignored. Rejects when there is none.
 */
export async function resolveNodes(name: string, resolveSrv: ResolveSrv): Promise<HostPort[]> {
  const records = await resolveSrv(name);
  if (records.length === 0) throw new Error('the record lists no node');
  const nodes = records.map(({ name: target, port }) => {
    const host = target.replace(/\.$/, '');
    return { text: `${host}.:${port}`, node: { host, port } };
  });
  nodes.sort((a, b) => (a.text < b.text ? -1 : a.text > b.text ? 1 : 0));
  return nodes.map(({ node }) => node);
}
