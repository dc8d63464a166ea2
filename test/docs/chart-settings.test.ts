import { readFile } from 'node:fs/promises';
import test from 'ava';
import { withSettings } from './chart-settings.ts';

test("the chart's schema has the values of each choice, boolean and duration (npm run docs)", async (t) => {
  const stored = await readFile(
    new URL('../../compose/helm/ratelane/values.schema.json', import.meta.url),
    'utf8',
  );
  t.deepEqual(JSON.parse(stored), JSON.parse(withSettings(stored)));
  const { worker, controlPlane } = JSON.parse(stored).properties;
  const { KVSTORE_FAILURE_MODE, KVSTORE_TIMEOUT, REDIS_TLS } =
    worker.properties.settings.properties;
  t.true(KVSTORE_FAILURE_MODE.enum.includes('allow'));
  t.is(REDIS_TLS.$ref, '#/definitions/boolean');
  t.is(KVSTORE_TIMEOUT.$ref, '#/definitions/duration');
  t.true(Object.keys(controlPlane.properties.settings.properties).length > 0);
});
