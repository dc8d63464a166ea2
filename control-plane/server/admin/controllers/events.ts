// `/events`: announces news, as server-sent events.
import Type from 'typebox';
import { op, ServerEvent } from '../../../../shared/router/index.ts';
import { AdminController } from '../admin-controller.ts';
import { localCaller } from '../authorize.ts';

export class Default extends AdminController {
  static readonly GET = op({
    summary: 'Events that announce something new to read',
    description:
      '`revisions`: the newest revision, the one in force or the one on trial is another, one has a new outcome, or rules have ended by themselves. `state`: that, or the rollout, the store, or which workers have what. `figures`: workers have reported since. The first events come at once, and one at least every five seconds. Their data has no meaning.',
    produces: 'text/event-stream',
    returns: { 200: Type.String() },
    failures: { 503: undefined },
  });

  async *GET() {
    const { events, callerOf, mayGoOn } = this.api;
    const caller = callerOf(this.request);
    const own = caller === localCaller ? undefined : caller;
    for await (const name of events.follow(this.request.signal, own)) {
      // An event is sent every five seconds, so a revoked token is noticed within that time.
      if (!mayGoOn(this.request)) return;
      yield new ServerEvent('', { name });
    }
  }
}
