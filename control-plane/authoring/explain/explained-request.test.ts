import test from 'ava';
import { parseRuleDocument } from '../../../shared/rules/document/document.ts';
import { locateRules } from '../../../shared/rules/lookup/located-rule.ts';
import { explainRequest } from './explained-request.ts';

test('the explanation yields after each descriptor of a request', (t) => {
  const { document } = parseRuleDocument(
    'domain: d\ndescriptors: [{ key: k, rate_limit: { unit: day, requests_per_unit: 1 } }]',
    'd.yaml',
  );
  const rules = document && locateRules([document]).get('d');
  if (rules === undefined) return t.fail('good rules were refused');
  const descriptors = Array.from({ length: 100 }, (_, index) => [{ key: `k${index}`, value: '' }]);
  const work = explainRequest('d', rules, descriptors, 0);
  let turns = 0;
  while (!work.next().done) turns++;
  t.true(turns >= descriptors.length);
});
