// `/events`: says when there is something new to read, as server-sent events.
import { Readable } from 'node:stream';
import Type from 'typebox';
import { op } from '../../../shared/router/op.ts';
import { AdminController } from '../admin-controller.ts';

export class Default extends AdminController {
  static readonly GET = op({
    summary: 'Events that say when there is something new to read',
    description:
      '`state`: revisions, rollout or the workers having them may have changed. `figures`: workers have reported since. The first event comes at once, and one at least every five seconds.',
    produces: 'text/event-stream',
    returns: { 200: Type.String() },
    failures: { 503: undefined },
  });

  GET() {
    const { events } = this.api;
    const stream = new Readable({ read() {} });
    const leave = events.join({
      send: (event) => {
        // What nobody reads is not kept: the next event says the same.
        if (stream.readableLength === 0) stream.push(`event: ${event}\ndata:\n\n`);
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
