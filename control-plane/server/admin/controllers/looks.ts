// `/looks`: a control plane notifies its peers that the store has something new (peers/exchange.ts).
import Type from 'typebox';
import { type Fields, op } from '../../../../shared/router/index.ts';
import { AdminController } from '../admin-controller.ts';
import { askingPeer } from '../joined.ts';

export class Default extends AdminController {
  static readonly POST = op({
    summary: 'Poll for a new revision now, where this one is not known yet',
    description: 'For peers that have seen it.',
    query: Type.Object({ peer: askingPeer }),
    body: Type.Object({ revision: Type.String({ minLength: 1, maxLength: 128 }) }),
    returns: { 200: Type.Object({ looks: Type.Boolean() }) },
    failures: { 409: undefined },
  });

  POST({ revision, peer }: Fields<typeof Default.POST>) {
    this.refuseItself(peer);
    const { store } = this.api;
    const looks = store.status().revision?.id !== revision;
    if (looks) void store.trigger();
    return { looks };
  }
}
