// A rules document for tests of what must carry all of a rule: to other threads, to YAML.
import { ruleKeys } from '../../shared/rules/rule-keys.ts';

const flags = ruleKeys.filter(({ type }) => type === 'flag');
/** A document with every key. document.test.ts compares it with rule-keys.ts. */
export const everyKey = `domain: shop
descriptors:
  - key: customer
    value: a*
    ${flags.map(({ name }) => `${name}: true`).join('\n    ')}
    until: 2026-11-24T18:00:00Z
    metadata: {tier: [gold, {tier: 1}]}
    rate_limit:
      unit: minute
      unit_multiplier: 5
      requests_per_unit: 100
      algorithm: token_bucket
      burst: 150
      count_over_limit: true
      lease: {share: 5%, for: 500ms}
      name: all
      replaces: [{name: plan}]
    descriptors:
      - key: path
        rate_limits:
          - {unit: second, requests_per_unit: 5}
          - {unit: minute, requests_per_unit: 60}
  - key: plan
    rate_limit: {unlimited: true}
`;
