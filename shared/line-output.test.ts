import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Writable } from 'node:stream';
import test from 'ava';
import { createLineOutput } from './line-output.ts';

test('lines reach the stream in order', (t) => {
  const written: string[] = [];
  const output = createLineOutput(
    new Writable({
      write(chunk, _encoding, done) {
        written.push(String(chunk));
        done();
      },
    }),
  );
  output.write('a\n');
  output.write('b\n');
  t.deepEqual(written, ['a\n', 'b\n']);
  t.is(output.droppedCount, 0);
});

test('a reader that stands still costs bounded memory, and what is lost is counted', (t) => {
  const stream = new Writable({ write: () => {} });
  const output = createLineOutput(stream);
  const line = `${'x'.repeat(64 * 1024 - 1)}\n`;
  for (let i = 0; i < 1000; i++) output.write(line);
  t.false(output.ready);
  t.true(stream.writableLength <= 4 * 1024 * 1024 + line.length);
  t.is(output.droppedCount, 1000 - Math.ceil((4 * 1024 * 1024) / line.length));
});

test('a reader that goes away does not end the process', async (t) => {
  const script = `
    import { createLineOutput } from './line-output.ts';
    const output = createLineOutput(process.stderr);
    const timer = setInterval(() => {
      output.write('x\\n');
      if (output.droppedCount === 0) return;
      clearInterval(timer);
      console.log('still here');
    }, 1);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    cwd: import.meta.dirname,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let out = '';
  child.stdout.on('data', (chunk) => {
    out += chunk;
  });
  await once(child.stderr, 'data');
  child.stderr.destroy();
  const [code] = await once(child, 'close');
  t.is(code, 0);
  t.is(out, 'still here\n');
});
