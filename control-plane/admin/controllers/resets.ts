// `/resets`: sets counters of given descriptors back to nothing.
import Type from 'typebox';
import { HttpError } from '../../../shared/router/errors.ts';
import { type Fields, op } from '../../../shared/router/op.ts';
import { AdminController } from '../admin-controller.ts';
import { countersAsked, countersJson } from '../counters-json.ts';

export class Default extends AdminController {
  static readonly POST = op({
    summary: 'Set the counters of descriptors back to nothing',
    description:
      'The workers of this control plane are asked, for at most 2 seconds. Each answer has the counters after the reset.',
    body: Type.Object({
      ...countersAsked,
      reason: Type.String({ minLength: 1, maxLength: 4096, description: 'For the audit log' }),
    }),
    returns: { 200: countersJson },
    failures: { 404: undefined, 409: undefined, 503: undefined },
  });

  POST({ domain, descriptors, worker, reason }: Fields<typeof Default.POST>) {
    const shown = descriptors
      .map((entries) => entries.map(({ key, value }) => `(${key}=${value})`).join(''))
      .join(', ');
    return this.audited(`reset counters of ${shown} of domain ${domain}: ${reason}`, async () => {
      const result = await this.askCounters({ domain, descriptors, worker, reset: true });
      const problems = result.answers.flatMap(({ problem }) => problem ?? []);
      const [first] = problems;
      if (first !== undefined && problems.length === result.answers.length) {
        throw new HttpError(409, { detail: `nothing was reset: ${first}` });
      }
      return result;
    });
  }
}
