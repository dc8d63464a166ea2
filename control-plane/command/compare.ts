// `compare`: sends the same recorded requests to two services, and prints the differences between their answers.
import { isAbsolute } from 'node:path';
import type { ChannelCredentials } from '@grpc/grpc-js';
import { toCountText } from '../../shared/count-text.ts';
import type { RecordedDecision } from '../../shared/decision-record.ts';
import { parseHostPort } from '../../shared/host-port.ts';
import { escapeText } from '../../shared/rules/problem/escaped-text.ts';
import type { AnswerDifference } from '../authoring/comparison/answer-difference.ts';
import type { Comparison } from '../authoring/comparison/comparison.ts';
import {
  openRecordedDecisions,
  type RecordingReading,
} from '../authoring/rehearsal/replay/recorded-decisions.ts';
import {
  type AddCommand,
  type CommandFrame,
  describeExitCodes,
  exitCodes,
} from './command-frame.ts';
import { startProgress } from './progress.ts';
import type { TlsOptions } from './tls-options.ts';

interface CompareOptions extends TlsOptions {
  readonly reference: GivenAddress;
  readonly candidate: GivenAddress;
  readonly replay: readonly string[];
  readonly speed: number;
  readonly json?: boolean;
}

interface GivenAddress {
  /** The address as given. */
  readonly text: string;
  readonly target: string;
  readonly isTls: boolean;
}

export const addCompare: AddCommand = (command, frame) => {
  command
    .description(
      'Sends each recorded request to two rate limit services at once, and prints every difference in code, limit, remaining, reset, headers and metadata. For migrating from one service to another.',
    )
    .requiredOption(
      '--reference <address>',
      'gRPC port of the reference service: host:port, tls://host:port or unix:/path',
      parseAddress,
    )
    .requiredOption(
      '--candidate <address>',
      'gRPC port of the candidate service, in the same forms',
      parseAddress,
    )
    .option('--ca <path>', 'for tls://: CAs to trust besides those of this system')
    .option('--cert <path>', 'for tls://: a client certificate, with --key')
    .option('--key <path>', 'for tls://: its private key')
    .requiredOption(
      '--replay <path>',
      'a file of recorded decisions; repeat it for several',
      (path: string, earlier: readonly string[] | undefined) => [...(earlier ?? []), path],
    )
    .option(
      '--speed <number>',
      'how many times as fast as recorded; 0: as fast as both answer',
      parseSpeed,
      1,
    )
    .option('--json', 'print one JSON object per line: each difference, then the summary')
    .addHelpText(
      'after',
      `
The requests are counted: ask no service that serves real traffic, and give the two stores of their own, or
another CACHE_KEY_PREFIX each. Both begin with empty counters, and with the same rules. Requests go one after the other, and none while
a second begins, so that both count it in the same window. Times to a reset may differ by a second.
${describeExitCodes('no differences', 'differences', 'wrong usage, a file that cannot be read, or a service that cannot be reached or has disconnected')}`,
    )
    .action((options: CompareOptions) => compare(frame, options));

  function parseAddress(text: string): GivenAddress {
    if (text.startsWith('unix:')) {
      if (isAbsolute(text.slice('unix:'.length))) return { text, target: text, isTls: false };
      return refuse(`'${text}': write the full path, such as unix:/run/ratelane.sock`);
    }
    const isTls = text.startsWith('tls://');
    const target = isTls ? text.slice('tls://'.length) : text;
    const parsed = parseHostPort(target, 1);
    if (parsed.ok && parsed.value.host !== '') return { text, target, isTls };
    const reason = parsed.ok ? 'the host is missing' : parsed.reason;
    return refuse(`'${text}': ${reason}; write an address such as 127.0.0.1:8081`);
  }

  function parseSpeed(text: string): number {
    const speed = Number(text);
    if (text.trim() !== '' && speed >= 0 && Number.isFinite(speed)) return speed;
    return refuse(`--speed '${text}': write a number of at least 0, such as 10`);
  }

  function refuse(message: string): never {
    return command.error(`error: ${message}`, { exitCode: exitCodes.error });
  }
};

async function compare({ io, finish, fail }: CommandFrame, options: CompareOptions): Promise<void> {
  const { reference, candidate, replay, speed, json = false } = options;
  const opened = await openRecordedDecisions(replay);
  if (!opened.ok) return fail(`--replay ${opened.message}`);
  const tls = await readTls(options);
  if (typeof tls === 'string') return fail(tls);
  const { createAskedService } = await import('../authoring/comparison/asked-service.ts');
  const { compareServices } = await import('../authoring/comparison/comparison.ts');
  const services = {
    reference: createAskedService(reference.target, reference.isTls ? tls : undefined),
    candidate: createAskedService(candidate.target, candidate.isTls ? tls : undefined),
  };
  const stopping = new AbortController();
  const stop = () => stopping.abort();
  process.on('SIGINT', stop).on('SIGTERM', stop);
  const { batches, reading } = opened.recorded;
  const stopProgress = startProgress(io, () => describeProgress(reading));
  try {
    for (const [name, service] of Object.entries(services)) {
      const problem = await service.connect();
      if (problem !== undefined) {
        const { text } = name === 'reference' ? reference : candidate;
        return fail(`the ${name} ${text} cannot be called: ${problem}`);
      }
    }
    const comparison = await compareServices({
      ...services,
      batches,
      speed,
      clock: io.clock,
      signal: stopping.signal,
      onDifference: (asked, number, differences) =>
        io.write((json ? toJson : toText)(asked, number, differences)),
    });
    io.write(json ? toJsonSummary(comparison, reading) : toSummary(comparison));
    const error = describeError(comparison, reading);
    if (reading.leftOutCount > 0) {
      const [first] = reading.leftOut;
      const position =
        first && `, the first is line ${first.line} of '${first.file}': ${first.reason}`;
      io.writeError(
        `warning: ${toCountText(reading.leftOutCount, 'line')} left out${position ?? ''}\n`,
      );
    }
    if (error !== undefined) fail(error);
    else finish(comparison.different === 0 ? exitCodes.ok : exitCodes.no);
  } finally {
    stopProgress();
    process.off('SIGINT', stop).off('SIGTERM', stop);
    for (const service of Object.values(services)) service.close();
  }
}

/** Undefined if no service uses TLS; the reason if the options cannot be used. */
async function readTls({
  reference,
  candidate,
  ca,
  cert,
  key,
}: CompareOptions): Promise<ChannelCredentials | string | undefined> {
  if (reference.isTls || candidate.isTls) {
    const { readCredentials } = await import('./grpc-credentials.ts');
    return readCredentials({ ca, cert, key });
  }
  return ca === undefined && cert === undefined && key === undefined
    ? undefined
    : '--ca, --cert and --key are for a service with TLS: write its address as tls://host:port';
}

/** Why the comparison covers less than intended. */
function describeError(
  { gone, requests }: Comparison,
  { problem }: RecordingReading,
): string | undefined {
  if (gone !== undefined) {
    return `the ${gone.service} ended the comparison after ${toCountText(requests, 'request')}: ${gone.how}`;
  }
  if (problem !== undefined) return `--replay: ${problem}`;
  return requests === 0 ? 'there is no recorded decision to send' : undefined;
}

function describeProgress({ bytes, totalBytes, decisions }: RecordingReading): string {
  const percent = totalBytes === 0 ? 100 : Math.floor((100 * bytes) / totalBytes);
  return `${toCountText(decisions, 'decision')} read, ${percent} % of the recording`;
}

function toText(
  { domain, descriptors, time }: RecordedDecision,
  number: number,
  differences: readonly AnswerDifference[],
): string {
  const asked = descriptors.map(({ entries }) =>
    entries.map(({ key, value }) => `${key}=${value}`).join(','),
  );
  const lines = differences.map(({ kind, descriptor, header, reference, candidate }) => {
    const position = descriptor === undefined ? '' : `descriptor ${descriptor + 1} `;
    const name = header === undefined ? '' : ` ${header}`;
    return `  ${position}${kind}${name}: reference ${reference}, candidate ${candidate}`;
  });
  const head = `request ${number} (recorded ${new Date(time).toISOString()}), domain ${domain}: ${asked.join(' ')}`;
  return [head, ...lines].map((line) => `${escapeText(line)}\n`).join('');
}

function toJson(
  { domain, descriptors, time }: RecordedDecision,
  request: number,
  differences: readonly AnswerDifference[],
): string {
  return `${JSON.stringify({ request, time, domain, descriptors, differences })}\n`;
}

function toSummary({ requests, different, byKind, seconds, lateSeconds }: Comparison): string {
  const kinds = [...byKind].map(([kind, count]) => `${kind} ${count}`).join(', ');
  const late = lateSeconds >= 1 ? `, ${lateSeconds.toFixed(1)} s behind the pace` : '';
  const found = different === 0 ? 'no differences' : `${different} with differences (${kinds})`;
  return `${toCountText(requests, 'request')} compared in ${seconds.toFixed(1)} s${late}: ${found}\n`;
}

function toJsonSummary(
  { requests, different, byKind, seconds, lateSeconds, gone }: Comparison,
  { leftOutCount, dropped, problem }: RecordingReading,
): string {
  const summary = {
    requests,
    different,
    by_kind: Object.fromEntries(byKind),
    seconds,
    late_seconds: lateSeconds,
    gone: gone ?? null,
    lines_left_out: leftOutCount,
    decisions_dropped: dropped,
    problem: problem ?? null,
  };
  return `${JSON.stringify({ summary })}\n`;
}
