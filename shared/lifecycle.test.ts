import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { ExecutionContext } from 'ava';
import test from 'ava';

/**
 * Runs a program whose `start`, `stop` and so on are the given source text; there `hold` keeps it alive and `say`
 * writes a line to standard output.
 */
function run(t: ExecutionContext, program: string) {
  const script = `
    import { writeSync } from 'node:fs';
    import { AppError } from './errors.ts';
    import { runUntilStopped } from './lifecycle.ts';
    import { createLineOutput } from './line-output.ts';
    import { createLog } from './log.ts';
    const output = createLineOutput(process.stderr);
    const log = createLog({ level: 'info', format: 'text', write: output.write });
    const say = (text) => writeSync(1, text + '\\n');
    const hold = () => setInterval(() => {}, 1000);
    const never = () => new Promise(() => {});
    runUntilStopped({ log, stopTimeoutMs: 20_000, ${program} });`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    cwd: import.meta.dirname,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  let out = '';
  let log = '';
  child.stdout.setEncoding('utf8').on('data', (chunk) => {
    out += chunk;
  });
  child.stderr.setEncoding('utf8').on('data', (chunk) => {
    log += chunk;
  });
  return {
    child,
    /** Resolves when standard output holds `text`. */
    async logs(text: string) {
      while (!out.includes(text)) await once(child.stdout, 'data');
    },
    /** The exit code, or the signal's name, and everything written to standard error. */
    ended: once(child, 'close').then(([code, signal]) => ({ code: code ?? signal, log })),
  };
}

const words = { SIGINT: 'interrupt', SIGTERM: 'terminated', SIGHUP: 'hangup' } as const;
for (const [signal, word] of Object.entries(words)) {
  test(`${signal} stops a serving program in order, with exit code 0`, async (t) => {
    const { child, logs, ended } = run(
      t,
      `async start() { hold(); say('serving'); },
       onStopping(reason) { say('stopping ' + reason); },
       async stop(reason) { say('stop ' + reason); }`,
    );
    await logs('serving\n');
    child.kill(signal as keyof typeof words);
    const { code, log } = await ended;
    await logs(`stopping ${signal}\nstop ${signal}\n`);
    t.is(code, 0);
    t.regex(log, new RegExp(`level=info msg="Received signal ${word}, initiating shutdown"`));
  });
}

test('a warning of Node is a line of the log', async (t) => {
  const { child, logs, ended } = run(
    t,
    `async start() {
       hold();
       process.emitWarning('for operators');
       process.emitWarning('for authors', 'DeprecationWarning');
       setImmediate(() => say('serving'));
     },
     async stop() {}`,
  );
  await logs('serving\n');
  child.kill('SIGTERM');
  const { log } = await ended;
  t.regex(log, /^time="[^"]+" level=warning msg="Warning: for operators"\n/);
  t.notRegex(log, /for authors|\(node:/);
});

test('a signal during the start aborts it and still stops with exit code 0', async (t) => {
  const { child, logs, ended } = run(
    t,
    `start: (signal) => new Promise((resolve, reject) => {
       hold();
       say('starting');
       signal.addEventListener('abort', () => reject(signal.reason));
     }),
     async stop(reason) { say('stop ' + reason); }`,
  );
  await logs('starting\n');
  child.kill('SIGTERM');
  const { code, log } = await ended;
  await logs('stop SIGTERM\n');
  t.is(code, 0);
  t.notRegex(log, /level=error/);
});

test('a start that ignores the signal cannot keep the process alive', async (t) => {
  const { child, logs, ended } = run(
    t,
    `stopTimeoutMs: 100,
     start() { hold(); say('starting'); return never(); },
     async stop() { say('stop'); }`,
  );
  await logs('starting\n');
  child.kill('SIGTERM');
  const { code, log } = await ended;
  t.is(code, 0);
  t.regex(log, /level=warning msg="Not everything was closed within 100ms/);
});

// Proof of migrating.md: SIGTERM always ends the process, in bounded time; a second signal at once
test('a stop that never ends is cut short, with exit code 0', async (t) => {
  const { child, logs, ended } = run(
    t,
    `stopTimeoutMs: 100,
     async start() { hold(); say('serving'); },
     stop: never`,
  );
  await logs('serving\n');
  child.kill('SIGTERM');
  const { code, log } = await ended;
  t.is(code, 0);
  t.regex(log, /Not everything was closed within 100ms/);
});

test('a second signal exits at once with exit code 0', async (t) => {
  const { child, logs, ended } = run(
    t,
    `async start() { hold(); say('serving'); },
     stop() { say('stopping'); return never(); }`,
  );
  await logs('serving\n');
  child.kill('SIGTERM');
  await logs('stopping\n');
  child.kill('SIGINT');
  const { code, log } = await ended;
  t.is(code, 0);
  t.regex(log, /level=warning msg="Received a second signal \(interrupt\), exiting at once"/);
  t.notRegex(log, /Not everything was closed/);
});

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test(`${signal} again within two seconds is the same stop, later it is a second one`, async (t) => {
    const again = (afterMs: number) =>
      run(
        t,
        `async start() { hold(); },
         async stop() { say('stopped'); await new Promise((resolve) => setImmediate(resolve)); },
       });
       const now = performance.now();
       for (let i = 0; i < 3; i++) process.emit('${signal}', '${signal}');
       performance.now = () => now + ${afterMs};
       process.emit('${signal}', '${signal}');
       void ({`,
      ).ended;
    const same = await again(1_990);
    t.is(same.code, 0);
    t.notRegex(same.log, /second signal/);
    const second = await again(2_010);
    t.is(second.code, 0);
    t.regex(
      second.log,
      /level=warning msg="Received a second signal \((?:interrupt|terminated)\), ex/,
    );
  });
}

for (const ended of ['npx', 'the shell of npx']) {
  test(`under npx a program stops when ${ended} ends`, async (t) => {
    const script = `
    import { endWithNpx, listenForStopSignals } from './stop-signals.ts';
    listenForStopSignals((signal) => { console.log('stop ' + signal); process.exit(0); }, () => {});
    endWithNpx(process.env['npm_lifecycle_event']);
    setInterval(() => {}, 1000);
    console.log('serving ' + process.pid + ' ' + process.ppid);`;
    // The shell does not replace itself by the program: it has another command to run afterwards.
    const starter = `process.title = 'npm exec x';
    const of = ['-c', '"$0" --input-type=module -e "$1"; :', process.execPath, process.argv[1]];
    require('node:child_process').spawn('sh', of, { stdio: 'inherit' });`;
    const npx = spawn(process.execPath, ['-e', starter, script], {
      cwd: import.meta.dirname,
      env: { ...process.env, npm_lifecycle_event: 'npx' },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let out = '';
    npx.stdout.setEncoding('utf8').on('data', (chunk) => {
      out += chunk;
    });
    while (!out.includes('serving')) await once(npx.stdout, 'data');
    const [pid = 0, shell = 0] = (/serving (.*)\n/.exec(out)?.[1] ?? '').split(' ').map(Number);
    t.teardown(() => {
      if (!out.includes('stop')) process.kill(pid, 'SIGKILL');
    });
    if (ended === 'npx') npx.kill('SIGHUP');
    else process.kill(shell, 'SIGTERM');
    while (!out.includes('stop')) await once(npx.stdout, 'data');
    t.regex(out, /stop SIGTERM\n$/);
  });
}

test('a start that fails prints the error without a stack and exits with 1', async (t) => {
  const { logs, ended } = run(
    t,
    `async start() { hold(); throw new AppError('cannot_start', 'RUNTIME_ROOT: no such directory'); },
     async stop(reason) { say('stop ' + reason); }`,
  );
  const { code, log } = await ended;
  await logs('stop undefined\n');
  t.is(code, 1);
  t.regex(log, /^time="[^"]+" level=error msg="RUNTIME_ROOT: no such directory"\n$/);
});

test('a start that fails because of a defect prints a stack and exits with 1', async (t) => {
  const { ended } = run(t, `async start() { undefined.x(); }, async stop() {}`);
  const { code, log } = await ended;
  t.is(code, 1);
  t.regex(log, /level=error msg="TypeError: .*\\n {4}at Object.start/);
});

test('a stop that fails is logged, and the exit code stays 0', async (t) => {
  const { child, logs, ended } = run(
    t,
    `async start() { hold(); say('serving'); },
     async stop() { throw new Error('cannot close'); }`,
  );
  await logs('serving\n');
  child.kill('SIGTERM');
  const { code, log } = await ended;
  t.is(code, 0);
  t.regex(log, /level=error msg="Stopping failed: Error: cannot close/);
});

test('an error that nothing catches is logged with its stack, or with the limit to raise, and the exit code is 1', async (t) => {
  const thrown = run(
    t,
    `async start() { hold(); setImmediate(() => { throw new Error('lost timer'); }); },
     async stop() {}`,
  );
  const rejected = run(
    t,
    `async start() { hold(); setImmediate(() => { Promise.reject(new Error('lost promise')); }); },
     async stop() {}`,
  );
  const full = run(
    t,
    `async start() { hold(); setImmediate(() => { throw new Error('open EMFILE'); }); },
     async stop() {}`,
  );
  const { code, log } = await full.ended;
  t.is(code, 1);
  t.regex(log, /ends: open EMFILE: raise the limit of open files \(ulimit -n, LimitNOFILE\)"/);
  const first = await thrown.ended;
  t.is(first.code, 1);
  t.regex(first.log, /Unexpected error, the process ends: Error: lost timer\\n {4}at /);
  const second = await rejected.ended;
  t.is(second.code, 1);
  t.regex(second.log, /Unexpected error, the process ends: Error: lost promise\\n {4}at /);
});

test('a log without a reader does not keep the process from ending', async (t) => {
  const { child, logs, ended } = run(
    t,
    `async start() {
       hold();
       for (let i = 0; i < 100; i++) log.warning('x'.repeat(10_000));
       say('serving');
     },
     async stop() {}`,
  );
  child.stderr.pause();
  await logs('serving\n');
  child.kill('SIGTERM');
  await once(child, 'exit');
  child.stderr.resume();
  t.is((await ended).code, 0);
});
