// `npm run -s client`: asks a worker for one decision from the command line, and prints the answer.
import { endWhenOutputIsClosed } from '../shared/closed-output.ts';
import { maskArguments } from '../shared/settings/shown-value.ts';
import { readVersion } from '../shared/version.ts';
import { type ClientArguments, parseClientArguments, usage } from './client/arguments.ts';
import { type CallTracing, startClientTracer } from './client/call-tracing.ts';
import { askForDecision } from './client/decision-call.ts';
import { toResponseJson } from './client/response-json.ts';
import { toResponseText } from './client/response-text.ts';
import { codes } from './decision/message.ts';

const exitCodes = { answered: 0, noAnswer: 1, wrongFlags: 2, overLimit: 3 } as const;
/** Time limit for sending the call's span: the tracing library's default. */
const tracerGraceMs = 10_000;

endWhenOutputIsClosed();
const parsed = parseClientArguments(process.argv.slice(2));
if (parsed.kind === 'help') {
  process.stdout.write(usage);
} else if (parsed.kind === 'version') {
  process.stdout.write(`${readVersion()}\n`);
} else if (parsed.kind === 'wrong') {
  writeError(`${parsed.message}\n\n${usage}`);
  process.exitCode = exitCodes.wrongFlags;
} else {
  const ask = parsed.arguments;
  const tracing = await startTracing(ask);
  const outcome = await askForDecision(ask, tracing);
  if (outcome.ok) {
    const { response } = outcome;
    const text = ask.json ? `${toResponseJson(response)}\n` : toResponseText(response, ask);
    process.stdout.write(text);
    const isRefused = ask.failOverLimit && response.overallCode === codes.overLimit;
    process.exitCode = isRefused ? exitCodes.overLimit : exitCodes.answered;
  } else {
    writeError(`${outcome.message}\n`);
    process.exitCode = exitCodes.noAnswer;
  }
  await tracing?.tracer.stop(tracerGraceMs);
}

function writeError(text: string): void {
  process.stderr.write(maskArguments(text, process.argv.slice(2)));
}

async function startTracing({ traceProtocol }: ClientArguments): Promise<CallTracing | undefined> {
  if (traceProtocol === undefined) return undefined;
  const tracer = await startClientTracer(traceProtocol, (text) => {
    process.stderr.write(`${text}\n`);
  });
  return { tracer, optIns: (process.env['OTEL_SEMCONV_STABILITY_OPT_IN'] ?? '').split(',') };
}
