// Preloaded into a program (`node --import`), and so into each process that it forks. While the file
// `INJECTED_ERRORS.armed` exists, every callback that can report an error does so once for each place in the code that
// waits for it, and every open socket and watcher breaks once. SIGUSR2: the file was created or removed. Each error is
// logged as a line of the file INJECTED_ERRORS.
import childProcess from 'node:child_process';
import dgram from 'node:dgram';
import { subscribe } from 'node:diagnostics_channel';
import dns from 'node:dns/promises';
import type { EventEmitter } from 'node:events';
import fs, { existsSync } from 'node:fs';
import fsPromises from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import type { Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { isMainThread } from 'node:worker_threads';

type Call = (...values: unknown[]) => unknown;
type Callee = Record<string, Call>;

const root = fileURLToPath(new URL('../../../', import.meta.url));
const report = process.env['INJECTED_ERRORS'] ?? '';
const { appendFileSync } = fs;
const injected = new Set<string>();
/** Prefix of a forked process' errors. */
let prefix = '';
/** Open sockets and watchers, which fail by themselves, with their names. */
const open = new Map<EventEmitter, string>();
let isArmed = false;

/** `worker/fleet/link.ts:98`, the innermost position in the programs (for a timer, where the clock is set); otherwise
 * the calling library, or undefined. */
function findCaller(): string | undefined {
  const lines = (new Error('place').stack ?? '').split('\n');
  const own = lines.find((line) => /\/(worker|control-plane|shared)\/(?!clock\.ts)/.test(line));
  const found = own ?? lines.find((line) => line.includes('/node_modules/'));
  return /(?:file:\/\/)?(\/[^:)]+):(\d+)/
    .exec(found ?? '')
    ?.slice(1)
    .join(':')
    .replace(root, '');
}

function note(error: string): boolean {
  const what = `${prefix}${error}`;
  if (!isArmed || injected.has(what)) return false;
  injected.add(what);
  appendFileSync(report, `${what}\n`);
  return true;
}

/** The error of this call; undefined when one was already injected at its place. */
function failureOf(kind: string, isAllowed = (_caller: string) => true): Error | undefined {
  const caller = isArmed ? findCaller() : undefined;
  if (caller === undefined || !isAllowed(caller) || !note(`${kind} in ${caller}`)) return undefined;
  return Object.assign(new Error(`${kind} fails for a test`), { code: 'EIO', errno: -5 });
}

function replace(holder: object, name: string, wrap: (original: Call) => Call): void {
  const callee = holder as Callee;
  const original = callee[name];
  if (original === undefined) throw new Error(`there is no ${name}`);
  // Called with its own object, since some are methods.
  callee[name] = function (this: unknown, ...values: unknown[]) {
    return wrap(original.bind(this))(...values);
  };
}

const isOwn = (caller: string) => !caller.includes('node_modules');

function rejectOnce(holder: object, kind: string, names: readonly string[]): void {
  for (const name of names) {
    replace(holder, name, (original) => (...values) => {
      const failure = failureOf(`${kind}.${name}`, isOwn);
      return failure === undefined ? original(...values) : Promise.reject(failure);
    });
  }
}

/** Calls the last argument with the error. */
function callBackOnce(holder: object, kind: string, name: string): void {
  replace(holder, name, (original) => (...values) => {
    const done = values.at(-1);
    const failure = typeof done === 'function' ? failureOf(`${kind}.${name}`) : undefined;
    if (failure === undefined) return original(...values);
    process.nextTick(done as Call, failure);
    return undefined;
  });
}

function throwOnce(holder: object, kind: string, name: string): void {
  replace(holder, name, (original) => (...values) => {
    const failure = failureOf(`${kind}.${name} throws`, isOwn);
    if (failure !== undefined) throw failure;
    return original(...values);
  });
}

/** Emits `error` once for each place that creates such an object. */
function breakOnce(emitter: EventEmitter, kind: string, end: (failure: Error) => void): void {
  const failure = failureOf(kind);
  if (failure !== undefined) setTimeout(end, 5, failure);
  else if (!isArmed) open.set(emitter, `${kind} in ${findCaller() ?? 'a library'}`);
}

const destroyer = (stream: { destroy(failure: Error): unknown }) => (failure: Error) =>
  void stream.destroy(failure);

rejectOnce(fsPromises, 'fs', ['readFile', 'writeFile', 'open', 'stat', 'lstat', 'readdir']);
rejectOnce(fsPromises, 'fs', ['rename', 'rm', 'mkdir', 'realpath', 'unlink', 'readlink']);
rejectOnce(dns, 'dns', ['lookup']);
const handle = await fsPromises.open(fileURLToPath(import.meta.url));
rejectOnce(Object.getPrototypeOf(handle), 'FileHandle', ['appendFile', 'read', 'stat', 'sync']);
await handle.close();
for (const name of ['connect', 'send']) {
  callBackOnce(dgram.Socket.prototype, 'dgram', name);
  throwOnce(dgram.Socket.prototype, 'dgram', name);
}
throwOnce(fs, 'fs', 'watch');
replace(fs, 'watch', (original) => (...values) => {
  const watcher = original(...values) as EventEmitter;
  breakOnce(watcher, 'fs.watch', (failure) => watcher.emit('error', failure));
  return watcher;
});
replace(fs, 'createReadStream', (original) => (...values) => {
  const stream = original(...values) as fs.ReadStream;
  breakOnce(stream, 'fs.createReadStream', destroyer(stream));
  return stream;
});
replace(childProcess, 'spawn', (original) => (file, ...values) => {
  const isMissing = failureOf('spawn') !== undefined;
  const child = original(
    isMissing ? '/no/such/program' : file,
    ...values,
  ) as childProcess.ChildProcess;
  if (isMissing) return child;
  for (const name of ['stdin', 'stdout', 'stderr'] as const) {
    const stream = child[name];
    const failure = stream === null ? undefined : failureOf(`spawn.${name}`);
    if (stream !== null && failure !== undefined) {
      stream.destroy(failure);
      return child;
    }
  }
  if (failureOf('spawn, killed') !== undefined) child.kill('SIGKILL');
  return child;
});
replace(childProcess, 'fork', (original) => (file, argv, options) => {
  const isMissing = failureOf('fork') !== undefined;
  const execPath = isMissing ? '/no/such/program' : process.execPath;
  const child = original(file, argv, {
    ...(options as childProcess.ForkOptions),
    execPath,
  }) as childProcess.ChildProcess;
  if (!isMissing) breakFork(child);
  return child;
});
throwOnce(childProcess, 'child_process', 'fork');
syncBuiltinESMExports();

const { default: cluster } = await import('node:cluster');
if (cluster.isWorker) breakForked();

/** A channel fails when a process ends: messages on a channel that stays are never lost. */
function breakFork(child: childProcess.ChildProcess): void {
  if (failureOf('fork, killed') !== undefined) child.kill('SIGKILL');
  replace(child, 'send', (original) => (message, handle, ...others) => {
    const isConnection = typeof handle === 'object' && handle !== null;
    const failure = typeof handle === 'function' ? failureOf('fork.send') : undefined;
    if (
      failure !== undefined ||
      (isConnection && note('fork, killed with a connection underway'))
    ) {
      child.kill('SIGKILL');
    }
    if (failure === undefined) return original(message, handle, ...others);
    process.nextTick(handle as Call, failure);
    return false;
  });
}

/** A timer has no callback for errors, so its task throws: the process ends on purpose. */
function breakForked(): void {
  prefix = 'forked: ';
  open.set(process, 'channel');
  replace(process, 'send', (original) => (...values) => {
    const failure = failureOf('process.send');
    if (failure === undefined) return original(...values);
    process.disconnect();
    process.nextTick(values.at(-1) as Call, failure);
    return false;
  });
  for (const name of ['setTimeout', 'setImmediate']) {
    replace(globalThis, name, (original) => (task, ...values) => {
      const failure = failureOf(`${name} throws`, isOwn);
      if (failure === undefined) return original(task, ...values);
      return original(
        () => {
          throw failure;
        },
        ...values,
      );
    });
  }
}

for (const channel of ['net.client.socket', 'net.server.socket', 'udp.socket']) {
  subscribe(channel, (message) => {
    const { socket } = message as { readonly socket: Socket };
    const isUdp = channel === 'udp.socket';
    const end = isUdp ? (failure: Error) => void socket.emit('error', failure) : destroyer(socket);
    breakOnce(socket, channel, end);
    socket.once('close', () => open.delete(socket));
  });
}
subscribe('http.client.request.created', (message) => {
  const { request } = message as { readonly request: EventEmitter & { destroy(why: Error): void } };
  breakOnce(request, 'http.client.request', destroyer(request));
});
subscribe('http.server.request.start', (message) => {
  const { request } = message as { readonly request: EventEmitter & { destroy(why: Error): void } };
  breakOnce(request, 'http.server.request', destroyer(request));
});
subscribe('worker_threads', (message) => {
  const { worker } = message as { readonly worker: EventEmitter };
  breakOnce(worker, 'worker_threads', (failure) => void worker.emit('error', failure));
});

function turn(): void {
  const wasArmed = isArmed;
  isArmed = existsSync(`${report}.armed`);
  if (isArmed && !wasArmed) breakAllOpen();
  if (wasArmed && !isArmed && cluster.isPrimary) appendFileSync(report, 'end\n');
}

function breakAllOpen(): void {
  // A process that replaces another does not fail where the other one has.
  if (existsSync(report))
    for (const line of fs.readFileSync(report, 'utf8').split('\n')) injected.add(line);
  const failure = Object.assign(new Error('what is open fails for a test'), { code: 'EIO' });
  for (const [emitter, what] of open) {
    if (!note(`open ${what}`)) continue;
    if ('destroy' in emitter) (emitter as Socket).destroy(failure);
    else if (emitter === process) process.disconnect();
    else emitter.emit('error', failure);
  }
  for (const name of ['stdout', 'stderr'] as const)
    if (note(name)) process[name].emit('error', failure);
}

if (isMainThread) {
  process.on('SIGUSR2', turn);
  appendFileSync(`${report}.pids`, `${process.pid}\n`);
  turn();
}
