// The flags of `npm run bench`.
import { parseArgs } from 'node:util';
import type { Scenario } from './scenario.ts';
import { findScenario, scenarios } from './scenario.ts';
import type { Service } from './service.ts';

export interface BenchCommand {
  readonly scenarios: readonly Scenario[];
  readonly rates: readonly (number | undefined)[];
  readonly rounds: number;
  readonly measuredMs: number;
  readonly connections: number;
  readonly streams: number;
  readonly others: readonly Service[];
  /** Besides the grid: round trips of the store, and the highest rate. */
  readonly hasExtras: boolean;
  /** Decisions of the long run; 0 disables it. */
  readonly soakDecisions: number;
  /** Where the results are written; undefined: only displayed. */
  readonly outputFolder: string | undefined;
}

export const usage = `Usage: npm run bench -- [flags]

Measures what a decision costs, beside a @grpc/grpc-js server that gives a constant answer.
Without flags: everything but the long run, half an hour, written to test/bench/results/.
CONTRIBUTING.md tells how to read it.

  --scenario NAME     only this one, and only the grid; may be repeated:
                      ${scenarios.map(({ name }) => name).join('\n                      ')}
  --rounds N          of each scenario and service; default 5
  --seconds N         measured time of each load; default 3
  --rate N            offered requests per second; may be repeated; default 2000, 8000, 20000,
                      each beside saturation; 0 is saturation alone
  --against COMMAND   another service of the same protocol, beside; name=COMMAND names it. It gets
                      its settings by environment variables: GRPC_PORT, PORT, RUNTIME_ROOT,
                      RUNTIME_SUBDIRECTORY, REDIS_SOCKET_TYPE, REDIS_URL and so on
  --connections N     default 4
  --streams N         concurrent requests on each connection; default 64
  --soak              also the long run: 10 million decisions at 20,000 a second, 9 minutes
  --soak-decisions N  the same with another number of decisions
  --quick             one short round at saturation and 2,000 a second, to see that it runs
  --output FOLDER     where results are written, also of parts
`;

const defaultRates = [2_000, 8_000, 20_000];
const defaultSoakDecisions = 10_000_000;
const defaultFolder = `${import.meta.dirname}/results`;

/** Throws a sentence for the user when a flag is wrong. */
export function parseCommandLine(args: readonly string[]): BenchCommand | 'help' {
  const { values } = parseArgs({
    args: [...args],
    options: {
      scenario: { type: 'string', multiple: true },
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      rate: { type: 'string', multiple: true },
      against: { type: 'string', multiple: true },
      connections: { type: 'string' },
      streams: { type: 'string' },
      soak: { type: 'boolean' },
      'soak-decisions': { type: 'string' },
      quick: { type: 'boolean' },
      output: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help) return 'help';
  const isQuick = values.quick ?? false;
  const isFull = values.scenario === undefined && !isQuick;
  const rates = values.rate?.map((rate) => parseNumber('rate', rate, 0));
  return {
    scenarios: values.scenario?.map(findScenario) ?? scenarios,
    rates: [undefined, ...(rates ?? (isQuick ? [2_000] : defaultRates)).filter((rate) => rate > 0)],
    rounds: parseNumber('rounds', values.rounds ?? (isQuick ? '1' : '5'), 1),
    measuredMs: 1000 * parseNumber('seconds', values.seconds ?? (isQuick ? '0.4' : '3'), 0.1),
    connections: parseNumber('connections', values.connections ?? '4', 1),
    streams: parseNumber('streams', values.streams ?? '64', 1),
    others: (values.against ?? []).map(parseService),
    hasExtras: isFull,
    soakDecisions:
      values['soak-decisions'] === undefined
        ? values.soak
          ? defaultSoakDecisions
          : 0
        : parseNumber('soak-decisions', values['soak-decisions'], 1),
    outputFolder: values.output ?? (isFull ? defaultFolder : undefined),
  };
}

function parseNumber(flag: string, text: string, least: number): number {
  const value = Number(text);
  if (!(value >= least))
    throw new Error(`--${flag} must be a number of at least ${least}: ${text}`);
  return value;
}

function parseService(text: string, index: number): Service {
  // In lower case, since a command may begin by setting a variable.
  const named = /^([a-z][a-z0-9.-]*)=(.+)$/s.exec(text);
  return named?.[1] !== undefined && named[2] !== undefined
    ? { name: named[1], command: named[2], kind: 'other' }
    : { name: index === 0 ? 'other' : `other ${index + 1}`, command: text, kind: 'other' };
}
