// Warns at the start about ports that other machines can reach: which data they could read there or on the way, and
// which setting prevents it.

import { isLoopback } from '../../../shared/host-port.ts';
import { joinNames, type TableReading } from '../../../shared/settings/parse-settings.ts';
import type { Setting } from '../../../shared/settings/setting.ts';
import { toExcerpt } from '../../../shared/text-excerpt.ts';
import { type PeerSource, protocolOf } from '../record/peers/peer-list.ts';
import type { PeersSettings } from '../record/peers/peers.ts';
import { controlPlaneTable } from './table.ts';

/** The most characters of peer addresses in a message. */
const maxPeersLength = 200;

type Reading = TableReading<typeof controlPlaneTable>;

/** `isReachable` states for each port whether other machines can reach it. */
export function warnExposure(
  reading: Reading,
  isReachable: { readonly xds: boolean; readonly admin: boolean },
): string[] {
  const { xds, admin, config } = controlPlaneTable;
  const isGiven = (row: Setting<string>): boolean => reading.of(row).value !== '';
  const warnings: string[] = [];
  const tokenFiles = {
    xds: [xds.settings.tokensFile],
    admin: [admin.settings.tokensFile, config.settings.peersTokenFile],
  };
  for (const name of ['xds', 'admin'] as const) {
    const { certFile, keyFile, address } = { xds, admin }[name].settings;
    const given = tokenFiles[name].filter(isGiven);
    if (!isReachable[name] || given.length === 0 || isGiven(certFile)) continue;
    warnings.push(
      `the tokens of ${given.map(joinNames).join(' and ')} travel in clear text to ${reading.of(address).value}: give ${joinNames(certFile)} and ${joinNames(keyFile)}`,
    );
  }
  const { tokensFile, clientCaFile, address } = xds.settings;
  if (isReachable.xds && !isGiven(tokensFile) && !isGiven(clientCaFile)) {
    // A rollout is judged by its workers' reports.
    const more = isGiven(config.settings.rollout)
      ? ', and count for or against a revision as one worker for each connection that it opens'
      : '';
    warnings.push(
      `anyone who can reach ${toExcerpt(reading.of(address).value)} can read all rules${more}: give ${joinNames(tokensFile)} or ${joinNames(clientCaFile)}, or a loopback address as ${joinNames(address)}`,
    );
  }
  return warnings;
}

/** Requests to peers carry the tokens of callers, and that of this control plane. */
export function warnPeerExposure(reading: Reading, peers: PeersSettings | undefined): string[] {
  const { config, admin } = controlPlaneTable;
  const tokenFiles = [admin.settings.tokensFile, config.settings.peersTokenFile];
  const hasTokens = tokenFiles.some((row) => reading.of(row).value !== '');
  if (peers === undefined || !hasTokens) return [];
  const { sources, dnsProtocol } = peers;
  const open = sources
    .filter((source) => protocolOf(source, dnsProtocol) === 'http:')
    .filter((source) => !isLoopback(hostOf(source)))
    .map((source) =>
      source.kind === 'dns' ? `dns:${source.host}:${source.port}` : source.url.origin,
    );
  if (open.length === 0) return [];
  const { certFile, keyFile } = admin.settings;
  return [
    `tokens travel in clear text to the peers ${toExcerpt(open.join(', '), maxPeersLength)} of ${joinNames(config.settings.peers)}: write https://; those of a name (dns:) are asked over https with ${joinNames(certFile)} and ${joinNames(keyFile)}`,
  ];
}

/** An IPv6 address without its brackets. */
function hostOf(source: PeerSource): string {
  return source.kind === 'dns' ? source.host : source.url.hostname.replace(/^\[(.*)\]$/, '$1');
}
