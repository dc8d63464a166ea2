// Tests a worker of another make beside one of ours: status lists the rules that it cannot enforce.
import test from 'ava';
import { extensionsAnnouncement } from '../../../shared/rules/wire/resource-fields.ts';
import { callDiscovery, discoveryProtos } from '../../support/ads-fixture.ts';
import { createControlPlaneInProcess } from '../../support/control-plane-in-process.ts';
import { createRulesFolder } from '../../support/rules-folder.ts';

const sotw = discoveryProtos.aggregated.StreamAggregatedResources;
const rules = `domain: shop
descriptors:
  - key: user
    share_threshold: true
    value: a*
    rate_limit: {unit: minute, unit_multiplier: 5, requests_per_unit: 10, algorithm: token_bucket, burst: 20, count_over_limit: true}
  - key: list
    value_to_metric: true
    rate_limits:
      - {unit: second, requests_per_unit: 5}
      - {unit: minute, requests_per_unit: 60, algorithm: sliding_window}
  - {key: leased, rate_limit: {unit: minute, requests_per_unit: 1000, lease: {share: 5%, for: 1s}}}
  - {key: leased, value: ada, until: 2020-01-01T00:00:00Z, rate_limit: {unlimited: true}}
`;

test('status names the workers that cannot enforce fields of the rules', async (t) => {
  const folder = createRulesFolder(t, { 'shop.yaml': rules });
  const controlPlane = await createControlPlaneInProcess(t, {
    flags: ['--config-dir', folder.path],
  });
  await controlPlane.start();
  const port = Number(controlPlane.xdsAddress.split(':')[1]);
  const [key, value] = extensionsAnnouncement;
  const metadata = { fields: { [key]: { stringValue: value } } };
  const connect = async (node: object) => {
    const stream = callDiscovery(t, port, sotw, { node });
    const { versionInfo = '', nonce = '' } = await stream.next();
    stream.send({ versionInfo, responseNonce: nonce });
  };
  await connect({ id: 'ours', metadata });
  const alone = await controlPlane.run('status', '--wait', '--timeout', '60s');
  t.is(alone.exitCode, 0, alone.stdout);
  t.is(alone.stderr, '');
  await connect({ id: 'theirs' });
  const both = await controlPlane.run('status', '--wait', '--min-workers', '2', '--timeout', '60s');
  t.is(both.exitCode, 0, both.stdout);
  t.regex(
    both.stderr,
    /^warning: worker theirs at \S+ cannot enforce algorithm, burst, count_over_limit, lease, rate_limits, share_threshold, unit_multiplier, until, value_to_metric of domain 'shop': it has the rules without, since it is not of Ratelane, or older\n$/,
  );
});
