// `npm run -s client`: asks a worker for one decision from the command line, and prints the answer.
import { parseClientArguments, usage } from './client/arguments.ts';
import { askForDecision } from './client/decision-call.ts';
import { toResponseJson } from './client/response-json.ts';
import { toResponseText } from './client/response-text.ts';

const exitCodes = { answered: 0, noAnswer: 1, wrongFlags: 2 } as const;

const parsed = parseClientArguments(process.argv.slice(2));
if (parsed.kind === 'help') {
  process.stdout.write(usage);
} else if (parsed.kind === 'wrong') {
  process.stderr.write(`${parsed.message}\n\n${usage}`);
  process.exitCode = exitCodes.wrongFlags;
} else {
  const ask = parsed.arguments;
  const outcome = await askForDecision(ask);
  if (outcome.ok) {
    const { response } = outcome;
    const text = ask.json
      ? `${toResponseJson(response)}\n`
      : toResponseText(response, ask.descriptors);
    process.stdout.write(text);
    process.exitCode = exitCodes.answered;
  } else {
    process.stderr.write(`${outcome.message}\n`);
    process.exitCode = exitCodes.noAnswer;
  }
}
