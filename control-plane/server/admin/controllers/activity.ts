// `/activity`: actions of users and of the programs, from all control planes.
import Type from 'typebox';
import { type Fields, HttpError, op } from '../../../../shared/router/index.ts';
import { activityJson, entriesJson, findEntries, toEntries } from '../activity-json.ts';
import { AdminController } from '../admin-controller.ts';
import { askingPeer } from '../joined.ts';

/** Authors of older revisions are not included. */
const searchedRevisions = 200;
const part = Type.Optional(Type.String({ minLength: 1, maxLength: 200 }));

export class Default extends AdminController {
  static readonly GET = op({
    summary: 'What users and the programs did, the newest first',
    description:
      'The last 1,000 lines of the audit log of each control plane, and what became of the last 50 revisions.',
    query: Type.Object({
      who: part,
      object: part,
      since: Type.Optional(Type.String({ format: 'date-time', maxLength: 40 })),
      until: Type.Optional(Type.String({ format: 'date-time', maxLength: 40 })),
      limit: Type.Integer({ default: 100, minimum: 1, maximum: 1_000, description: 'Of a list' }),
      peer: askingPeer,
    }),
    returns: { 200: activityJson },
    failures: { 409: undefined, 503: undefined },
  });

  async GET({ who, object, since, until, limit, peer }: Fields<typeof Default.GET>) {
    const [sinceMs, untilMs] = [readTime('since', since), readTime('until', until)];
    const answers = this.askPeers('/activity?limit=1000', entriesJson, peer);
    const { activity, rollout, store } = this.api;
    const history = await this.fromStore(store.history(searchedRevisions));
    const own = toEntries(activity.read(), rollout.memory().outcomes, history);
    const { values, missing } = await answers;
    const others = values.flatMap((answer) => answer.deeds);
    return {
      deeds: findEntries([...own, ...others], { who, object, sinceMs, untilMs, limit }),
      missing,
    };
  }
}

function readTime(name: string, text: string | undefined): number | undefined {
  const timeMs = text === undefined ? undefined : Date.parse(text);
  if (Number.isNaN(timeMs)) throw new HttpError(400, { detail: `${name}: ${text} is not a time` });
  return timeMs;
}
