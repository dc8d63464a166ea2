// Tests what all programs share on the command line: their version, their exit code for wrong usage, and an output that
// is closed early.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import packageFile from '../../../package.json' with { type: 'json' };
import { programFile, runProgram } from '../../support/programs.ts';
import { createTemporaryFolder } from '../../support/temporary-folder.ts';

const root = join(import.meta.dirname, '..', '..', '..');
const programs = {
  worker: programFile('worker'),
  'control-plane': programFile('control-plane'),
  client: programFile('client'),
  router: join(root, 'shared/router/command/main.ts'),
} as const;

const run = (file: string, args: readonly string[], closesEarly = false) =>
  runProgram([process.execPath, file, ...args], { closesEarly });

for (const [name, file] of Object.entries(programs)) {
  test(`${name} prints its version`, async (t) => {
    t.deepEqual(await run(file, ['--version']), {
      code: 0,
      out: `${packageFile.version}\n`,
      err: '',
    });
  });

  test(`${name} ends with 2 when it is used wrongly`, async (t) => {
    const { code, out, err } = await run(file, ['--nothing-of-the-kind']);
    t.is(code, 2);
    t.is(out, '');
    t.regex(err, /nothing-of-the-kind/);
  });

  test(`${name} ends quietly when its output is not read`, async (t) => {
    t.deepEqual(await run(file, ['--help'], true), { code: 0, out: '', err: '' });
  });
}

test('router routes ends quietly when its output is not read', async (t) => {
  const folder = createTemporaryFolder(t);
  const controller = join(root, 'shared/router/controller.ts');
  const classes = Array.from(
    { length: 2_000 },
    (_, index) => `export class C${index} extends Controller { GET() { return ${index}; } }`,
  );
  const text = `import { Controller } from ${JSON.stringify(controller)};\n${classes.join('\n')}\n`;
  await writeFile(join(folder, 'index.ts'), text);
  const args = ['routes', '--prefix', folder];
  t.deepEqual(await run(programs.router, args, true), { code: 0, out: '', err: '' });
});
