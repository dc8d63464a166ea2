// Every setting that a document names exists: an outdated or misspelled name would mislead readers.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { controlPlaneTable } from '../../control-plane/server/settings/table.ts';
import { toRows } from '../../shared/settings/setting.ts';
import { workerTable } from '../../worker/settings/table.ts';
import { listFiles } from '../support/listed-files.ts';

const root = join(import.meta.dirname, '..', '..');
const documents = listFiles('*.md')
  // Documents of other programs (the router, the tests), or with many terms of another protocol.
  .filter((path) => !/^(?:shared\/router\/|test\/|shared\/grpc\/|CONTRIBUTING)/.test(path));

const known = new Set([
  ...[workerTable, controlPlaneTable].flatMap((table) =>
    toRows(table).flatMap(({ setting }) => setting.names),
  ),
  // Variables of commands.
  ...[
    'RATELANE_ADMIN_URL',
    'RATELANE_ADMIN_CA',
    'RATELANE_ADMIN_TOKEN',
    'RATELANE_ADMIN_TOKEN_FILE',
  ],
  // Upper-case words that are not settings.
  ...[
    'OVER_LIMIT',
    'NOT_SERVING',
    'GRPC_XDS_SOTW',
    'INVALID_ARGUMENT',
    'RESOURCE_EXHAUSTED',
    'DEADLINE_EXCEEDED',
    'REFUSED_STREAM',
    'ENHANCE_YOUR_CALM',
    'FRAME_SIZE_ERROR',
  ],
]);

/** Variables of libraries, systems and other programs. */
const isForeign = /^(?:AWS|GIT|NODE|OTEL|XDG)_/;

for (const document of documents) {
  test(`the settings that ${document} names exist`, (t) => {
    // Names in Envoy's configuration are Envoy's.
    const text = readFileSync(join(root, document), 'utf8').replaceAll(
      /^```yaml envoy\n.*?^```$/gms,
      '',
    );
    const names = [...text.matchAll(/(?<![\w/<&;])[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?![\w*.<]|_)/g)];
    const unknown = names
      .map(([name]) => name)
      .filter((name) => !known.has(name) && !isForeign.test(name));
    t.deepEqual([...new Set(unknown)], []);
  });
}
