// Compares the bill of materials of a release with the lock file.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';

const root = join(import.meta.dirname, '..', '..', '..');
// Plain JavaScript, without types.
const { createSbom, toReleaseLock } = await import(join(root, 'compose', 'package', 'sbom.mjs'));

interface Component {
  readonly name: string;
  readonly version: string;
  readonly licenses?: readonly unknown[];
  readonly hashes?: readonly { readonly content: string }[];
}

interface Locked {
  readonly version: string;
  readonly integrity: string;
  readonly dev?: boolean;
  readonly devOptional?: boolean;
}

test('a release lists each package that its programs run with, as in the lock file, and no other', (t) => {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  const wanted = Object.entries(packages as Record<string, Locked>)
    .filter(([path, { dev }]) => path !== '' && !dev && !path.startsWith('node_modules/node-'))
    .map(([path, { version, integrity }]) => {
      const hash = Buffer.from(integrity.replace('sha512-', ''), 'base64').toString('hex');
      return `${path.split('node_modules/').at(-1)}@${version} ${hash}`;
    });
  const npm = process.env['npm_execpath'];
  const document = JSON.parse(
    createSbom(root, npm === undefined ? ['npm'] : [process.execPath, npm]),
  );
  t.like(document, { bomFormat: 'CycloneDX', metadata: { component: { name: 'ratelane' } } });
  const components = document.components as Component[];
  const listed = components.map(
    ({ name, version, hashes }) => `${name}@${version} ${hashes?.[0]?.content}`,
  );
  t.deepEqual([...new Set(listed)].sort(), [...new Set(wanted)].sort());
  t.true(listed.some((line) => line.startsWith('ioredis@')));
  t.false(listed.some((line) => /^(?:ava|typescript)@/.test(line)));
});

test('the shrinkwrap of the package has the versions of the lock file, without bundled packages and tools', (t) => {
  const read = (name: string) => JSON.parse(readFileSync(join(root, name), 'utf8'));
  const manifest = { name: 'ratelane', version: '1.0.0', dependencies: { ioredis: '^6.0.0' } };
  const { packages } = toReleaseLock(root, manifest, (name: string) => name === 'typebox');
  t.like(packages[''], manifest);
  t.is(packages['node_modules/typebox'], undefined);
  const locked: Record<string, Locked> = read('package-lock.json').packages;
  for (const [path, { version, integrity, dev }] of Object.entries(packages as typeof locked)) {
    if (path === '') continue;
    t.like(locked[path], { version, integrity }, path);
    t.is(dev, undefined);
  }
  t.true(Object.keys(packages).length > 100);
});
