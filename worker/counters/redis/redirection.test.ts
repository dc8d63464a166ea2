import test from 'ava';
import { pluck } from '../../../test/support/pluck.ts';
import { type CommandText, type RawReply, toCommandText } from './connection.ts';
import { createRedirect, parseRedirection, type Redirection } from './redirection.ts';

const moved = (slot: number, address: string) => new Error(`MOVED ${slot} ${address}`);
const ask = (slot: number, address: string) => new Error(`ASK ${slot} ${address}`);

test('MOVED and ASK name slot and node; nothing else is a redirection', (t) => {
  const tcp = (host: string, port: number) => ({ kind: 'tcp', host, port }) as const;
  const parse = (reply: RawReply) => parseRedirection(reply, 'from');
  t.deepEqual(parse(moved(7, 'h:1')), { kind: 'moved', slot: 7, address: tcp('h', 1) });
  t.deepEqual(parse(ask(7, '::1:6379')), { kind: 'ask', slot: 7, address: tcp('::1', 6379) });
  t.deepEqual(parse(moved(7, ':1')), { kind: 'moved', slot: 7, address: tcp('from', 1) });
  for (const reply of ['MOVED 7 h:1', null, new Error('ERR MOVED 7 h:1'), new Error('MOVED')])
    t.is(parse(reply), undefined);
});

interface Carried {
  readonly to: string;
  readonly commands: readonly CommandText[];
}

function setUp(answer: (command: CommandText, to: string) => RawReply) {
  const carried: Carried[] = [];
  const seen: Redirection[] = [];
  const redirect = createRedirect({
    fromHost: 'from',
    sendCommands(address, commands, done) {
      const to = `${address.host}:${address.port}`;
      carried.push({ to, commands });
      setImmediate(() => done(commands.map((command) => answer(command, to))));
    },
    onMoved: (redirection) => seen.push(redirection),
    onLoop: () => {},
  });
  const run = (commands: CommandText[], replies: RawReply[]) =>
    new Promise<RawReply[]>((resolve) => redirect(commands, replies, resolve));
  return { run, carried, seen };
}

test('only redirected commands are sent again, in order, each to its node', async (t) => {
  const { run, carried, seen } = setUp((command, to) => `${command} at ${to}`);
  const commands = ['incrby a', 'incrby b', 'incrby c', 'expire a', 'incrby d', 'expire c'];
  const failure = new Error('OOM');
  const replies = await run(commands, [
    moved(1, 'x:1'),
    5,
    ask(2, 'y:2'),
    moved(1, 'x:1'),
    failure,
    ask(2, 'y:2'),
  ]);
  const asking = toCommandText('ASKING');
  t.deepEqual(carried, [
    { to: 'x:1', commands: ['incrby a', 'expire a'] },
    { to: 'y:2', commands: [asking, 'incrby c', asking, 'expire c'] },
  ]);
  t.deepEqual(replies, [
    'incrby a at x:1',
    5,
    'incrby c at y:2',
    'expire a at x:1',
    failure,
    'expire c at y:2',
  ]);
  t.deepEqual(pluck(seen, 'slot'), [1]);
});

test('nodes that redirect a command to each other are not followed for ever', async (t) => {
  const { run, carried } = setUp((_, to) => moved(1, to === 'x:1' ? 'y:2' : 'x:1'));
  const replies = await run(['incrby a'], [moved(1, 'x:1')]);
  t.is(carried.length, 5);
  t.regex(String(replies[0]), /MOVED 1/);
});
