// `/resets`: sets counters of given descriptors back to nothing.
import Type from 'typebox';
import { HttpError } from '../../../shared/router/errors.ts';
import { type Fields, op } from '../../../shared/router/op.ts';
import { AdminController } from '../admin-controller.ts';
import { countersAsked, countersJson, countersPeer } from '../counters-json.ts';

export class Default extends AdminController {
  static readonly POST = op({
    summary: 'Set the counters of descriptors back to nothing',
    description:
      'The workers of this control plane and of its peers are asked, for at most 2 seconds. Each answer has the counters after the reset.',
    query: countersPeer,
    body: Type.Object({
      ...countersAsked,
      reason: Type.String({ minLength: 1, maxLength: 4096, description: 'For the audit log' }),
    }),
    returns: { 200: countersJson },
    failures: { 404: undefined, 409: undefined, 503: undefined },
  });

  POST({ peer, ...asked }: Fields<typeof Default.POST>) {
    this.refuseItself(peer);
    const { domain, descriptors, worker, reason } = asked;
    const shown = descriptors
      .map((entries) => entries.map(({ key, value }) => `(${key}=${value})`).join(''))
      .join(', ');
    const what = `reset counters of ${shown} of domain ${domain}: ${reason}`;
    return this.audited(what, async (entry) => {
      const question = { domain, descriptors, worker, reset: true };
      const result = await this.askCounters(question, { path: '/resets', body: asked }, peer);
      const problems = result.answers.flatMap(({ problem }) => problem ?? []);
      const [first] = problems;
      if (first === undefined || problems.length < result.answers.length) return result;
      const detail = `nothing was reset: ${first}`;
      // Whoever asked a peer judges all answers together.
      if (peer === undefined) throw new HttpError(409, { detail });
      entry.what = `${what}; ${detail}`;
      return result;
    });
  }
}
