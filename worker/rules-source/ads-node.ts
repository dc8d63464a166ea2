// This worker's node identity for a management server.
import { agreementKey } from '../../shared/agreement-key.ts';
import { instanceKey } from '../../shared/instance-key.ts';
import { extensionsAnnouncement } from '../../shared/rules/wire/resource-fields.ts';
import type { NodeMessage } from '../../shared/wire/discovery-messages.ts';

/**
 * `metadata` is comma-separated key=value items, each split at its first `=`; items without one are ignored
 * (behaviour: discovery-requests). Three items are added: the announcement of fields that the public message
 * lacks (behaviour: fields-of-our-own), `agreement`, by which workers are compared, and `instance`, by which
 * those with one id are told apart. An added item wins over a given one with the same key.
 */
export function toAdsNode(worker: {
  readonly id: string;
  readonly metadata: string;
  readonly agreement: string;
  readonly instance: string;
}): NodeMessage {
  const { id, metadata, agreement, instance } = worker;
  const given = metadata
    .split(',')
    .filter((item) => item.includes('='))
    .map((item) => {
      const at = item.indexOf('=');
      return [item.slice(0, at), item.slice(at + 1)] as const;
    });
  const added = [
    extensionsAnnouncement,
    [agreementKey, agreement],
    [instanceKey, instance],
  ] as const;
  const fields = [...given, ...added].map(([key, value]) => [key, { stringValue: value }] as const);
  return { id, metadata: { fields: Object.fromEntries(fields) } };
}
