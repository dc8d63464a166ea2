import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import test from 'ava';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Whether V8 inlines string functions after `script` has run. */
async function hasFastStrings(script: string): Promise<string> {
  const asked = `${script}; process.on('exit', () => console.log(%HasFastProperties(String.prototype)))`;
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--allow-natives-syntax', '--input-type=module', '--eval', asked],
    { cwd: root },
  );
  return stdout.trim().split('\n').at(-1) ?? '';
}

// If this fails, the module has become useless and can be removed.
test('the Redis client by itself makes all string methods slow', async (t) => {
  t.is(await hasFastStrings(`await import('ioredis')`), 'false');
});

for (const entry of ['./worker/main.ts', './worker/processes/main.ts']) {
  test(`${entry} calls on strings fast although it loads the Redis client`, async (t) => {
    const script = `process.argv.push('worker', '--help'); await import('${entry}'); await import('ioredis')`;
    t.is(await hasFastStrings(script), 'true');
  });
}
