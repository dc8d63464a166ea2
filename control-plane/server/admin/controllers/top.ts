// `/top`: the most limited values, and the counts of the rules, from all reporting workers.
import Type from 'typebox';
import { type Fields, op } from '../../../../shared/router/index.ts';
import { AdminController } from '../admin-controller.ts';
import { askingPeer } from '../joined.ts';
import { mostOfEach, readTop, topJson, toTopPath } from '../top.ts';

export class Default extends AdminController {
  static readonly GET = op({
    summary: 'The values that are limited most, and the rules with the most hits over limit',
    description:
      'Of the last one or two minutes. Counts have bounds: each worker keeps 1,000 values.',
    query: Type.Object({
      domain: Type.Optional(Type.String({ maxLength: 1024, description: 'Of this domain alone' })),
      search: Type.Optional(
        Type.String({ maxLength: 200, description: 'Part of a domain, a rule or a value' }),
      ),
      limit: Type.Integer({
        default: 20,
        minimum: 1,
        maximum: mostOfEach,
        description: 'How many of each',
      }),
      peer: askingPeer,
    }),
    returns: { 200: topJson },
    failures: { 409: undefined },
  });

  GET({ peer, ...wanted }: Fields<typeof Default.GET>) {
    const answers = this.askPeers(toTopPath(wanted), topJson, peer);
    return readTop(this.api, wanted, answers);
  }
}
