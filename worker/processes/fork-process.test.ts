import cluster from 'node:cluster';
import test from 'ava';
import { forkProcess } from './fork-process.ts';

test('a process that cannot be made for want of memory has ended, and the primary goes on', async (t) => {
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
