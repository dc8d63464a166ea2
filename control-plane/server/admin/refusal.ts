// Errors of controllers with more than the router's own: the problems of rules, and failures of the store.

import { Stop, statusTitle } from '../../../shared/router/index.ts';
import type { ProblemJson } from './problem-json.ts';

export interface Refusal {
  readonly status: number;
  /** Sent to the client, also with a status of 500 and above: without secrets or unexpected texts. */
  readonly detail: string;
  readonly problems?: readonly ProblemJson[];
}

/** Throw it: `application/problem+json`, with `problems` beside the usual members. */
export function refuse(requestId: string, refusal: Refusal): Stop {
  const { status, detail, problems } = refusal;
  const body = {
    type: 'about:blank',
    title: statusTitle(status),
    status,
    detail,
    requestId,
    ...(problems === undefined ? {} : { problems }),
  };
  const response = new Response(JSON.stringify(body), {
    status,
    headers: { 'content-type': 'application/problem+json' },
  });
  const stop = new Stop(status, response);
  // The audit log has the message.
  stop.message = detail;
  return stop;
}
