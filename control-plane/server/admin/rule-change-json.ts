// The changes for requests in the format of the admin API.
import Type from 'typebox';
import { toPositionText } from '../../../shared/rules/lookup/located-rule.ts';
import type { RuleChange } from '../../authoring/rule-change.ts';

export const ruleChangeJson = Type.Object({
  kind: Type.String(),
  domain: Type.String(),
  requests: Type.Array(Type.Object({ key: Type.String(), value: Type.String() })),
  text: Type.String(),
  ruleBefore: Type.Union([Type.String(), Type.Null()]),
  ruleAfter: Type.Union([Type.String(), Type.Null()]),
});
export type RuleChangeJson = Type.Static<typeof ruleChangeJson>;

export function toRuleChangeJson(change: RuleChange): RuleChangeJson {
  const { kind, domain, requests, text, ruleBefore, ruleAfter } = change;
  return {
    kind,
    domain,
    requests: [...requests],
    text,
    ruleBefore: ruleBefore ? toPositionText(ruleBefore) : null,
    ruleAfter: ruleAfter ? toPositionText(ruleAfter) : null,
  };
}
