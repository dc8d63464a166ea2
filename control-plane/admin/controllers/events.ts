// `/events`: says when there is something new to read, as server-sent events.
import Type from 'typebox';
import { op, ServerEvent } from '../../../shared/router/index.ts';
import { AdminController } from '../admin-controller.ts';

export class Default extends AdminController {
  static readonly GET = op({
    summary: 'Events that say when there is something new to read',
    description:
      '`revisions`: the newest revision, the one in force or the one on trial is another, one has a new outcome, or rules have ended by themselves. `state`: that, or the rollout, the store, or which workers have what. `figures`: workers have reported since. The first events come at once, and one at least every five seconds. Their data says nothing.',
    produces: 'text/event-stream',
    returns: { 200: Type.String() },
    failures: { 503: undefined },
  });

  async *GET() {
    for await (const name of this.api.events.follow(this.request.signal)) {
      // An event comes every five seconds, so a revoked token is not followed for longer.
      if (!this.api.mayGoOn(this.request)) return;
      yield new ServerEvent('', { name });
    }
  }
}
