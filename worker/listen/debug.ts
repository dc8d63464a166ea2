// The debug port: shows the state and statistics of this process. It opens before everything else, so its providers
// must answer at any time (behaviour: debug-pages).
import { METHODS } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../../shared/clock.ts';
import type { Log } from '../../shared/log.ts';
import {
  createPlainHttpServer,
  type HttpListener,
  type HttpTarget,
  sendError,
  sendText,
} from './plain-http-server.ts';
import { createProfiler, type Profiler } from './profiler.ts';
import { StreamedAnswers } from './streamed-answers.ts';

export interface DebugProviders {
  /** One line per rule in force; undefined before the first load. */
  readonly rules: () => Iterable<string> | undefined;
  /** Counters and gauges by name, sorted. */
  readonly stats: () => ReadonlyMap<string, number>;
  /** One line per setting, secrets masked. */
  readonly settings: () => readonly string[];
  /** Human-readable lines: whether rules are awaited or in force, since when, and any problems. */
  readonly status: () => readonly string[];
  /** Traffic that no rule matches, and why. */
  readonly unmatched: () => Promise<readonly string[]>;
  /** Set where other processes decide (worker/processes): their profilers by their number, from 1. */
  readonly profilers?: readonly Profiler[];
}

export interface DebugDeps {
  readonly providers: DebugProviders;
  readonly log: Log;
  readonly clock: Clock;
}

const defaultCpuSeconds = 30;
const defaultHeapSeconds = 10;
export const maxProfileSeconds = 120;
/** Nothing is sent while a profile is being taken. */
const stallLimitMs = (maxProfileSeconds + 30) * 1000;
export const maxConnections = 128;
/** The lines written in one turn: some tenths of a millisecond of work. */
const linesPerTurn = 1_000;

type Handler = (
  request: FastifyRequest,
  reply: FastifyReply,
) => FastifyReply | Promise<FastifyReply>;

interface Page {
  readonly path: string;
  readonly help: string;
  readonly handler: Handler;
}

export function createDebugServer(
  { providers, log, clock }: DebugDeps,
  { host, port, tls }: HttpTarget,
): HttpListener {
  const { profilers = [] } = providers;
  const answers = new StreamedAnswers(clock);
  /** Streams lines whose number grows with rules and traffic. */
  const sendLines = (request: FastifyRequest, reply: FastifyReply, lines: () => Iterable<string>) =>
    answers.send(request, reply, 'text/plain; charset=utf-8', () => toPieces(lines()));
  const allProfilers = [createProfiler({ clock }), ...profilers];
  const lastNumber = profilers.length;

  function profile(kind: 'cpu' | 'heap', defaultSeconds: number): Handler {
    return async (request, reply) => {
      const seconds = parseSeconds(request, defaultSeconds);
      if (seconds === undefined) {
        return sendError(
          reply,
          400,
          `seconds must be a whole number from 1 to ${maxProfileSeconds}`,
        );
      }
      // Without a number, a process that decides is profiled.
      const profiler = allProfilers[lastNumber === 0 ? 0 : (parseProcess(request) ?? 1)];
      if (profiler === undefined) {
        return sendError(reply, 400, `process must be a whole number from 0 to ${lastNumber}`);
      }
      const gone = new AbortController();
      reply.raw.once('close', () => gone.abort());
      const bytes = await profiler[kind](seconds * 1000, gone.signal);
      if (bytes === 'busy') {
        return sendError(reply, 409, 'another profile is being taken; try again when it has ended');
      }
      if (bytes === 'gone') {
        return sendError(reply, 503, 'there is no such process, or it ended meanwhile; try again');
      }
      return reply
        .type('application/octet-stream')
        .header('content-disposition', `attachment; filename="${kind}.pb.gz"`)
        .send(bytes);
    };
  }

  const pages: readonly Page[] = [
    {
      path: '/debug/pprof/',
      help: 'root of various pprof endpoints. hit for help.',
      handler: (_request, reply) =>
        sendText(
          reply,
          200,
          toText(describeProfiles(tls === undefined ? 'http' : 'https', lastNumber > 0)),
        ),
    },
    {
      path: '/debug/pprof/heap',
      help: 'heap profiling endpoint',
      handler: profile('heap', defaultHeapSeconds),
    },
    {
      path: '/debug/pprof/profile',
      help: 'CPU profiling endpoint',
      handler: profile('cpu', defaultCpuSeconds),
    },
    {
      path: '/debug/pprof/trace',
      help: 'trace endpoint',
      handler: (_request, reply) =>
        sendError(
          reply,
          501,
          'execution traces do not exist here; take a CPU profile from /debug/pprof/profile',
        ),
    },
    {
      path: '/rlconfig',
      help: 'print out the currently loaded configuration for debugging',
      handler: (request, reply) => sendLines(request, reply, () => providers.rules() ?? []),
    },
    {
      path: '/settings',
      help: 'print out the settings in force, secrets masked',
      handler: (_request, reply) => sendText(reply, 200, toText(providers.settings())),
    },
    {
      path: '/stats',
      help: 'print out stats',
      handler: (request, reply) => sendLines(request, reply, () => statLines(providers.stats())),
    },
    {
      path: '/status',
      help: 'print the state of start, rules, connections and health',
      handler: (_request, reply) => sendText(reply, 200, toText(providers.status())),
    },
    {
      path: '/unmatched',
      help: 'print out which descriptors no rule matches, and the nearest rule of each',
      handler: async (_request, reply) => sendText(reply, 200, toText(await providers.unmatched())),
    },
  ];
  const index = toText(pages.map(({ path, help }) => `${path}: ${help}`));

  return createPlainHttpServer(
    { name: 'debug', host, port, tls, stallLimitMs, maxConnections, log, clock },
    (server) => {
      for (const { path, handler } of pages) server.route({ method: METHODS, url: path, handler });
      // For the root and every unknown path.
      server.setNotFoundHandler((_request, reply) => sendText(reply, 200, index));
    },
  );
}

const describeProfiles = (scheme: string, hasProcesses: boolean): string[] => [
  `/debug/pprof/profile?seconds=${defaultCpuSeconds}: how CPU time is spent in that many seconds`,
  `/debug/pprof/heap?seconds=${defaultHeapSeconds}: what is allocated in that time and still in use at its end`,
  '',
  'Both are gzipped pprof files, at most one at a time and 120 seconds long:',
  `  go tool pprof ${scheme}://<this address>/debug/pprof/profile?seconds=10`,
  ...(hasProcesses ? processHelp : []),
];

const processHelp = [
  '',
  'With &process=2 they are profiles of the second process that decides, by default of the first one; with',
  '&process=0 of the process that starts them.',
];

/** -1 for an invalid process number. */
function parseProcess(request: FastifyRequest): number | undefined {
  const { process } = request.query as { readonly process?: string | string[] };
  if (process === undefined) return undefined;
  return typeof process === 'string' && /^\d{1,3}$/.test(process) ? Number(process) : -1;
}

function parseSeconds(request: FastifyRequest, defaultSeconds: number): number | undefined {
  const { seconds } = request.query as { readonly seconds?: string | string[] };
  if (seconds === undefined) return defaultSeconds;
  if (typeof seconds !== 'string' || !/^\d{1,3}$/.test(seconds)) return undefined;
  const number = Number(seconds);
  return number >= 1 && number <= maxProfileSeconds ? number : undefined;
}

function* statLines(stats: ReadonlyMap<string, number>): Generator<string, void> {
  for (const [name, value] of stats) yield `${name}: ${value}`;
}

async function* toPieces(lines: Iterable<string>): AsyncGenerator<string, void> {
  let part: string[] = [];
  for (const line of lines) {
    part.push(line);
    if (part.length < linesPerTurn) continue;
    yield toText(part);
    part = [];
    await nextTurn();
  }
  yield toText(part);
}

function toText(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('');
}
