// A limit as the commands print it with --json.
import { listShape } from '../../shared/rules/limit-shape.ts';
import type { Limit } from '../../shared/rules/rule.ts';
import { toModes } from '../../shared/rules/rule-keys.ts';

export function toLimitJson(limit: Limit) {
  const { requestsPerUnit, unit, unlimited, name, replaces } = limit;
  return {
    requestsPerUnit: unlimited ? null : requestsPerUnit,
    unit: unit ?? null,
    ...Object.fromEntries(listShape(limit)),
    unlimited,
    name: name || null,
    replaces,
    ...toModes((mode) => limit[mode]),
  };
}
