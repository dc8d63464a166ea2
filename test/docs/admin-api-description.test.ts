// Checks the description of the admin API with the rules of a public linter.
import { readFile } from 'node:fs/promises';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import test from 'ava';

test('the description of the admin API follows the recommended rules of a public linter', async (t) => {
  const source = await readFile(
    new URL('../../control-plane/server/admin/openapi.json', import.meta.url),
    'utf8',
  );
  const config = await createConfig({
    extends: ['recommended'],
    // Ids consist of hexadecimal digits, so `diff` is not one. A tag is the first part of a path, and each operation
    // has a summary.
    rules: { 'no-ambiguous-paths': 'off', 'tag-description': 'off' },
  });
  const found = await lintFromString({ source, absoluteRef: 'openapi.json', config });
  t.deepEqual(
    found.map(({ ruleId, message, location }) => `${ruleId}: ${message} (${location[0]?.pointer})`),
    [],
  );
});
