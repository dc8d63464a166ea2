// Warnings at the start about ports that other machines can reach: what they could read there or on the
// way, and which setting prevents it.

import { joinNames, type TableReading } from '../../shared/settings/parse-settings.ts';
import type { Setting } from '../../shared/settings/setting.ts';
import { toExcerpt } from '../../shared/text-excerpt.ts';
import { controlPlaneTable } from './table.ts';

type Reading = TableReading<typeof controlPlaneTable>;

/** `isReachable` has for each port whether others can reach it. */
export function warnExposure(
  reading: Reading,
  isReachable: { readonly xds: boolean; readonly admin: boolean },
): string[] {
  const { xds, admin } = controlPlaneTable;
  const isGiven = (row: Setting<string>): boolean => reading.of(row).value !== '';
  const warnings: string[] = [];
  for (const name of ['xds', 'admin'] as const) {
    const { tokensFile, certFile, keyFile, address } = { xds, admin }[name].settings;
    if (!isReachable[name] || !isGiven(tokensFile) || isGiven(certFile)) continue;
    warnings.push(
      `the tokens of ${joinNames(tokensFile)} travel in clear text to ${reading.of(address).value}: give ${joinNames(certFile)} and ${joinNames(keyFile)}`,
    );
  }
  const { tokensFile, clientCaFile, address } = xds.settings;
  if (isReachable.xds && !isGiven(tokensFile) && !isGiven(clientCaFile)) {
    warnings.push(
      `whoever reaches ${toExcerpt(reading.of(address).value)} can read all rules: give ${joinNames(tokensFile)} or ${joinNames(clientCaFile)}, or a loopback address as ${joinNames(address)}`,
    );
  }
  return warnings;
}
