// This worker's node identity for a management server.
import { agreementKey } from '../../shared/agreement-key.ts';
import { ourFieldsAnnouncement } from '../../shared/rules/resource-fields.ts';
import type { NodeMessage } from '../../shared/wire/discovery-messages.ts';

/**
 * `metadata` is comma-separated key=value items, each split at its first `=`; items without one are
 * ignored (behaviour: discovery-requests). Added are the announcement of fields that the public message
 * lacks (behaviour: fields-of-our-own), and `agreement`, by which workers are compared.
 */
export function toAdsNode(id: string, metadata: string, agreement: string): NodeMessage {
  const given = metadata
    .split(',')
    .filter((item) => item.includes('='))
    .map((item) => {
      const at = item.indexOf('=');
      return [item.slice(0, at), item.slice(at + 1)] as const;
    });
  const fields = [...given, ourFieldsAnnouncement, [agreementKey, agreement] as const].map(
    ([key, value]) => [key, { stringValue: value }] as const,
  );
  return { id, metadata: { fields: Object.fromEntries(fields) } };
}
