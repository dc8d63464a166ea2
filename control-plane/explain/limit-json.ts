// A limit as the commands print it with --json.
import type { Limit } from '../../shared/rules/rule.ts';
import { toModes } from '../../shared/rules/rule-keys.ts';

export function toLimitJson(limit: Limit) {
  const { requestsPerUnit, unit, unlimited, name, replaces } = limit;
  return {
    requestsPerUnit: unlimited ? null : requestsPerUnit,
    unit: unit ?? null,
    unlimited,
    name: name || null,
    replaces,
    ...toModes((mode) => limit[mode]),
  };
}
