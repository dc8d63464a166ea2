import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import test from 'ava';
import { createLineOutput } from './line-output.ts';

/** Behaves as standard error on a full disk does: the write fails, and the stream has ended. */
function createFailingStream() {
  const fail = Object.assign(new Error('no space left'), { code: 'ENOSPC' });
  const stream = new Writable({ write: () => void stream.emit('error', fail) });
  return { stream, fail };
}

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

test('a reader that stalls costs bounded memory, and lost lines are counted', (t) => {
  const stream = new Writable({ write: () => {} });
  const output = createLineOutput(stream);
  const line = `${'x'.repeat(64 * 1024 - 1)}\n`;
  for (let i = 0; i < 1000; i++) output.write(line);
  t.false(output.ready);
  t.true(stream.writableLength <= 4 * 1024 * 1024 + line.length);
  t.is(output.droppedCount, 1000 - Math.ceil((4 * 1024 * 1024) / line.length));
});

test('a file that could not be written is written again, and lost lines are counted and reported', (t) => {
  const path = join(mkdtempSync(join(tmpdir(), 'ratelane-')), 'log');
  const fd = openSync(path, 'w');
  t.teardown(() => closeSync(fd));
  const { stream, fail } = createFailingStream();
  const output = createLineOutput(Object.assign(stream, { fd }), (dropped, reason) =>
    output.write(`${dropped} lost: ${reason}\n`),
  );
  output.write('before\n');
  t.is(output.droppedCount, 1);
  t.true(output.ready);
  // No file can be written through an invalid descriptor: the disk is still full.
  Object.assign(stream, { fd: -1 });
  output.write('lost\n');
  t.is(output.droppedCount, 2);
  Object.assign(stream, { fd });
  output.write('after\n');
  t.is(readFileSync(path, 'utf8'), `after\n2 lost: ${fail.message}\n`);
});

test('a program that serves outlives a log that cannot be written, whatever its command does', async (t) => {
  const script = `
    import { endWhenOutputIsClosed } from './closed-output.ts';
    import { createProgramLog } from './program-log.ts';
    endWhenOutputIsClosed();
    const log = createProgramLog({ level: 'info', format: 'text' });
    for (let line = 0; line < 3; line++) {
      log.info('x');
      await new Promise(setImmediate);
    }
    console.log('still here');`;
  const full = openSync('/dev/full', 'w');
  t.teardown(() => closeSync(full));
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    cwd: import.meta.dirname,
    stdio: ['ignore', 'pipe', full],
  });
  const [out, [code]] = await Promise.all([
    child.stdout && text(child.stdout),
    once(child, 'close'),
  ]);
  t.is(out, 'still here\n');
  t.is(code, 0);
});

test('a reader that disconnects does not end the process', async (t) => {
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
