import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import test from 'ava';

const root = fileURLToPath(new URL('..', import.meta.url));

test('no worker loads libraries that only some workers need', async (t) => {
  const script = `import { createRequire } from 'node:module';
    await import('./worker/run-worker.ts');
    console.log(Object.keys(createRequire(import.meta.url).cache).join('\\n'))`;
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--input-type=module', '--eval', script],
    { cwd: root },
  );
  t.regex(stdout, /node_modules\/fastify\//);
  t.notRegex(stdout, /node_modules\/(@grpc|protobufjs|@opentelemetry|@aws-sdk|ajv)\//);
});
