// Redirections of cluster nodes: a node that redirects a command has not executed it, so these commands, and no others,
// are sent a second time (behaviour: never-sent-twice).
import type { TcpAddress } from './address.ts';
import { type CommandText, type RawReply, toCommandText } from './connection.ts';
import type { Redirect } from './redis-lane.ts';
import { isKnownHost } from './slots.ts';

/** Limit of redirections of a command; more of them mean that nodes disagree. */
const maxHops = 5;

export interface Redirection {
  /** `moved`: for good; `ask`: only this time, while the slot migrates. */
  readonly kind: 'moved' | 'ask';
  readonly slot: number;
  readonly address: TcpAddress;
}

/** Undefined for every other reply. `fromHost` replaces a host that the node omits. */
export function parseRedirection(
  reply: RawReply | undefined,
  fromHost: string,
): Redirection | undefined {
  if (!(reply instanceof Error)) return undefined;
  const match = /^(MOVED|ASK) (\d{1,5}) (.*):(\d{1,5})$/.exec(reply.message);
  if (match === null) return undefined;
  const [, word, slot, host, port] = match;
  return {
    kind: word === 'ASK' ? 'ask' : 'moved',
    slot: Number(slot),
    address: {
      kind: 'tcp',
      host: host !== undefined && isKnownHost(host) ? host : fromHost,
      port: Number(port),
    },
  };
}

export interface RedirectDeps {
  readonly fromHost: string;
  /** Sends commands to the node at this address. */
  readonly sendCommands: (
    address: TcpAddress,
    commands: readonly CommandText[],
    done: (replies: RawReply[]) => void,
  ) => void;
  readonly onMoved: (redirection: Redirection) => void;
  /** Called when the last node redirected the command as well. */
  readonly onLoop: (redirection: Redirection) => void;
}

interface Group {
  readonly redirection: Redirection;
  /** Indices of the commands in the batch, in order. */
  readonly positions: number[];
}

/** Forwards the commands that the node at `fromHost` redirected, in order for each node. */
export function createRedirect({
  fromHost,
  sendCommands,
  onMoved,
  onLoop,
}: RedirectDeps): Redirect {
  return (commands, replies, done) => follow(commands, replies, maxHops, done);

  function follow(
    commands: readonly CommandText[],
    replies: RawReply[],
    hopsLeft: number,
    done: (replies: RawReply[]) => void,
  ): void {
    const groups = findGroups(replies);
    if (groups.length === 0 || hopsLeft === 0) {
      for (const { redirection } of groups) onLoop(redirection);
      done(replies);
      return;
    }
    let open = groups.length;
    for (const { redirection, positions } of groups) {
      const isAsking = redirection.kind === 'ask';
      if (!isAsking) onMoved(redirection);
      const again = positions.map((position) => commands[position] as CommandText);
      const sent = isAsking ? again.flatMap((command) => [asking, command]) : again;
      sendCommands(redirection.address, sent, (raw) => {
        const answers = isAsking ? raw.filter((_, index) => index % 2 === 1) : raw;
        for (const [index, position] of positions.entries()) {
          const answer = answers[index];
          if (answer !== undefined) replies[position] = answer;
        }
        open--;
        if (open === 0) follow(commands, replies, hopsLeft - 1, done);
      });
    }
  }

  function findGroups(replies: readonly RawReply[]): Group[] {
    const groups = new Map<string, Group>();
    for (const [position, reply] of replies.entries()) {
      const redirection = parseRedirection(reply, fromHost);
      if (redirection === undefined) continue;
      const { kind, address } = redirection;
      const name = `${kind} ${address.host}:${address.port}`;
      const group = groups.get(name);
      if (group === undefined) groups.set(name, { redirection, positions: [position] });
      else group.positions.push(position);
    }
    return [...groups.values()];
  }
}

const asking = toCommandText('ASKING');
