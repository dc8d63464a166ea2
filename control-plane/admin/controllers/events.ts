// `/events`: says when there is something new to read, as server-sent events.
import { Readable } from 'node:stream';
import Type from 'typebox';
import { op } from '../../../shared/router/index.ts';
import { AdminController } from '../admin-controller.ts';
import type { AdminEvent } from '../events.ts';

export class Default extends AdminController {
  static readonly GET = op({
    summary: 'Events that say when there is something new to read',
    description:
      '`revisions`: the newest revision or the one in force is another. `state`: that, or the rollout, the store, or which workers have what. `figures`: workers have reported since. The first events come at once, and one at least every five seconds.',
    produces: 'text/event-stream',
    returns: { 200: Type.String() },
    failures: { 503: undefined },
  });

  GET() {
    const { events } = this.api;
    // For who reads slowly each event waits once.
    const waiting = new Set<AdminEvent>();
    let isRead = false;
    const flush = () => {
      if (!isRead || waiting.size === 0) return;
      isRead = false;
      const text = [...waiting].map((event) => `event: ${event}\ndata:\n\n`).join('');
      waiting.clear();
      stream.push(text);
    };
    const stream = new Readable({
      highWaterMark: 1,
      read() {
        isRead = true;
        flush();
      },
    });
    const leave = events.join({
      send(event) {
        waiting.add(event);
        flush();
      },
      end: () => void stream.push(null),
    });
    if (leave === undefined) {
      throw this.refuse(503, 'too many callers listen to the events; ask again from time to time');
    }
    stream.once('close', leave);
    this.response.mediaType = 'text/event-stream';
    // A proxy that buffers would keep the events from the caller.
    this.response.headers.set('x-accel-buffering', 'no');
    return stream;
  }
}
