// `/resets`: resets the counters of given descriptors.
import Type from 'typebox';
import { type Fields, HttpError, op } from '../../../../shared/router/index.ts';
import { escapeText } from '../../../../shared/rules/problem/escaped-text.ts';
import { toExcerpt } from '../../../../shared/text-excerpt.ts';
import {
  countersAsked,
  countersJson,
  countersPeer,
  findDoubts,
} from '../../fleet/counter-answers.ts';
import { AdminController } from '../admin-controller.ts';

/** The most characters of a reason in the audit log; a worker may send it. */
const maxDoubtLength = 500;

export class Default extends AdminController {
  static readonly POST = op({
    summary: 'Reset the counters of descriptors',
    description:
      'The workers of this control plane and of its peers are asked, for at most 4 seconds. Of those that count together one resets the counters and another one reads them afterwards: the reset is confirmed where that one reads zero, or less than before, or read zero before. Each answer has the counters as they were read afterwards. 409 where every worker has a problem.',
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
    const { domain, descriptors, reason } = asked;
    const shown = descriptors
      .map((entries) => entries.map(({ key, value }) => `(${key}=${value})`).join(''))
      .join(', ');
    const what = `reset counters of ${shown} of domain ${domain}: ${reason}`;
    return this.audited(what, async (entry) => {
      const result = await this.askCounters('/resets', asked, peer);
      const { answers } = result;
      const [first, ...others] = findDoubts(result);
      if (answers.length === 0) entry.outcome = 'no such worker has a link here';
      else if (first !== undefined) {
        const more = others.length === 0 ? '' : ` (and ${others.length} more)`;
        const detail = `not confirmed: ${toExcerpt(escapeText(first), maxDoubtLength)}${more}`;
        // The control plane that asked its peers judges all answers together.
        if (peer === undefined && answers.every(({ problem }) => problem !== null)) {
          throw new HttpError(409, { detail });
        }
        const isPart = answers.some(({ confirmedBy }) => confirmedBy !== null);
        entry.outcome = isPart ? `done in part, ${detail}` : detail;
      }
      // The control plane that asked its peers marks the reset.
      if (peer === undefined) {
        const text = `${entry.who}: ${what}`;
        this.api.marks.note({ kind: 'reset', revision: undefined, text });
      }
      return result;
    });
  }
}
