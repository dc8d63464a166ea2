// Converts the settings of a management server to the options of its source.

import { type AgreementSettings, toAgreement } from '../agreement.ts';
import { toClientTlsFiles } from '../client-tls.ts';
import type { ManagementServer } from '../management-stream.ts';
import { parseServerAddresses } from '../settings/server-addresses.ts';
import type { WorkerSettings } from '../settings.ts';
import type { ReadToken } from '../token-file.ts';
import type { XdsSourceOptions } from './xds-source.ts';

/** Replaces a wait of 0, as in the reference: protects servers. */
const leastWaitMs = 100;
const usualLongestWaitMs = 10_000;

export function toXdsSourceOptions(
  settings: AgreementSettings & Pick<WorkerSettings, 'xds'>,
  random: () => number,
  readToken: ReadToken | undefined,
): XdsSourceOptions {
  const { xds } = settings;
  const { tls, backoff } = xds;
  const { factor } = backoff;
  const toServer = (url: string): ManagementServer => ({
    url,
    headers: xds.additionalHeaders,
    readToken,
    tls: tls.enabled ? { ...toClientTlsFiles(tls), san: tls.san || undefined } : undefined,
    maxMessageBytes: xds.maxMessageBytes,
  });
  // The start fails without a valid address.
  const [first = xds.serverUrl, ...others] = parseServerAddresses(xds.serverUrl).addresses;
  return {
    servers: [toServer(first), ...others.map(toServer)],
    nodeId: xds.nodeId,
    nodeMetadata: xds.nodeMetadata,
    agreement: toAgreement(settings).hash,
    connectRetryMs: xds.connectRetryIntervalMs || leastWaitMs,
    backoff: {
      initialMs: backoff.initialIntervalMs || leastWaitMs,
      maxMs: backoff.maxIntervalMs || usualLongestWaitMs,
      // A factor below 1 is added to 1, so that the waits really grow (behaviour: waits-between-streams).
      multiplier: factor > 1 ? factor : 1 + factor,
      random: backoff.jitter ? random : undefined,
    },
  };
}
