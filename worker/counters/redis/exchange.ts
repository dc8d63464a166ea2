// Sends commands and receives their replies over one open socket, in order.
import type { Socket } from 'node:net';
import { errorText } from '../../../shared/errors.ts';
import type { CommandText } from './command-text.ts';
import { createReplyReader, type RawReply } from './reply-reader.ts';

export interface Exchange {
  /**
   * Writes all commands at once. `done` is called once, never from inside `send`, with one reply per
   * command; those without a reply at the connection's end get errors.
   */
  send(commands: readonly CommandText[], done: (replies: RawReply[]) => void): void;
  /** Ends it at once, with everything in flight. */
  destroy(): void;
  /** Resolves, with the reason, when the connection has ended, whoever ended it. */
  readonly ended: Promise<string>;
}

interface Sent {
  readonly count: number;
  readonly replies: RawReply[];
  readonly done: (replies: RawReply[]) => void;
}

/** Takes over the socket: nobody else may use it from now on. */
export function createExchange(socket: Socket): Exchange {
  const unanswered: Sent[] = [];
  let reason: string | undefined;
  let tellEnd: (reason: string) => void = () => {};
  const ended = new Promise<string>((resolve) => {
    tellEnd = resolve;
  });
  const reader = createReplyReader(take);
  socket.removeAllListeners('data');
  socket.on('data', (chunk) => {
    const problem = reason === undefined ? reader.feed(chunk) : undefined;
    if (problem !== undefined) end(`the server sent ${problem}`);
  });
  socket.on('error', (error) => end(errorText(error)));
  socket.on('close', () => end('the connection was closed'));
  if (socket.destroyed) end('the connection was closed');
  return { send, destroy: () => end('the connection was closed'), ended };

  function send(commands: readonly CommandText[], done: Sent['done']): void {
    const sent = { count: commands.length, replies: [], done };
    if (reason === undefined && commands.length > 0) {
      unanswered.push(sent);
      let text = '';
      for (const command of commands) text += command;
      socket.write(text, 'latin1');
    } else {
      setImmediate(fail, sent);
    }
  }

  function take(reply: RawReply): void {
    const [first] = unanswered;
    if (reason !== undefined) return;
    if (first === undefined) {
      end('the server said something without being asked');
      return;
    }
    first.replies.push(reply);
    if (first.replies.length < first.count) return;
    // Nearly always there is only one, and then this costs almost nothing.
    if (unanswered.length === 1) unanswered.pop();
    else unanswered.shift();
    first.done(first.replies);
  }

  function end(why: string): void {
    if (reason !== undefined) return;
    reason = why;
    socket.destroy();
    tellEnd(why);
    // The caller that ends it may be in the middle of something.
    for (const sent of unanswered) setImmediate(fail, sent);
    unanswered.length = 0;
  }

  function fail({ count, replies, done }: Sent): void {
    while (replies.length < count) replies.push(new Error(reason));
    done(replies);
  }
}
