import cluster from 'node:cluster';
import test from 'ava';
import { forkProcess } from './fork-process.ts';

test.serial('a process without memory to start has ended, and the primary continues', async (t) => {
  const { fork } = cluster;
  t.teardown(() => {
    cluster.fork = fork;
  });
  cluster.fork = () => {
    throw new Error('spawn ENOMEM');
  };
  const gone: string[] = [];
  const forked = forkProcess({ onMessage: () => {}, onGone: (how) => void gone.push(how) });
  t.is(forked.pid, undefined);
  t.deepEqual(gone, []);
  await new Promise(setImmediate);
  t.deepEqual(gone, ['could not be started: spawn ENOMEM']);
});

test.serial(
  'a process receives what was sent before its program was loaded, as where something is loaded before it',
  async (t) => {
    const options = process.env['NODE_OPTIONS'];
    t.teardown(() => {
      if (options === undefined) delete process.env['NODE_OPTIONS'];
      else process.env['NODE_OPTIONS'] = options;
    });
    const reading = 'import fs from "node:fs/promises"; await fs.readFile(process.execPath);';
    process.env['NODE_OPTIONS'] = `--import=data:text/javascript,${encodeURIComponent(reading)}`;
    const gone = Promise.withResolvers<string>();
    const forked = forkProcess({ onMessage: () => {}, onGone: gone.resolve });
    t.teardown(forked.kill);
    void forked.send({ kind: 'stop', graceMs: 0 });
    t.is(await gone.promise, 'ended with exit code 0');
  },
);
