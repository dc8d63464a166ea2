// The port on which metrics are pulled (behaviour: pull-mapping). The answer is written piece by piece: it can be long,
// and its reader slow.
import { METHODS } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../../shared/clock.ts';
import type { Log } from '../../shared/log.ts';
import {
  createPlainHttpServer,
  type HttpListener,
  sendError,
} from '../listen/plain-http-server.ts';
import { StreamedAnswers } from '../listen/streamed-answers.ts';
import type { Tags } from '../metrics.ts';
import { chooseForm, contentTypes, type ExpositionForm, toExposition } from './exposition.ts';
import type { Mapping } from './metric-mapping.ts';
import { createPullSeries } from './pull-series.ts';
import type { MetricsRegistry } from './registry.ts';

/** The address to listen on. An empty host means every address. */
export interface PullTarget {
  readonly host: string;
  readonly port: number;
  /** The name of the address's setting, for messages. */
  readonly addressSetting: string;
  /** The only path with an answer. */
  readonly path: string;
  /** A file with the mapping; '' for the default one. */
  readonly mapperFile: string;
  /** The name of the setting, for messages. */
  readonly mapperSetting: string;
  /** Whether the worker observes response times in milliseconds; the default mapping scales them. */
  readonly responseTimeInMs: boolean;
}

export interface PullEndpointDeps {
  readonly registry: MetricsRegistry;
  readonly target: Pick<PullTarget, 'host' | 'port' | 'addressSetting' | 'path'>;
  readonly mapping: Mapping;
  readonly extraTags: Tags;
  readonly log: Log;
  readonly clock: Clock;
}

/** Metrics handled in one turn: some tenths of a millisecond of work, so that decisions do not wait. */
const metricsPerTurn = 250;
const stallLimitMs = 10_000;
export const maxConnections = 128;

export function createPullEndpoint(deps: PullEndpointDeps): HttpListener {
  const { registry, target, mapping, extraTags, log, clock } = deps;
  const series = createPullSeries({ registry, mapping, tags: extraTags, log, clock });
  const answers = new StreamedAnswers(clock);

  async function* write(form: ExpositionForm): AsyncGenerator<string> {
    registry.prepareReading();
    await series.refresh();
    while (series.append(metricsPerTurn)) await nextTurn();
    const nowMs = () => clock.monotonicMs();
    for (const piece of toExposition(series.families.values(), form, nowMs, metricsPerTurn)) {
      if (piece !== '') yield piece;
      await nextTurn();
    }
  }

  function answer(request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const [path] = request.url.split('?', 1);
    if (path !== target.path) return sendError(reply, 404, '404 page not found');
    const form = chooseForm(request.headers.accept ?? '');
    return answers.send(request, reply, contentTypes[form], () => write(form));
  }

  const { host, port, addressSetting: setting } = target;
  return createPlainHttpServer(
    { name: 'metrics', setting, host, port, stallLimitMs, maxConnections, log, clock },
    (server) => server.route({ method: METHODS, url: '*', handler: answer }),
  );
}
