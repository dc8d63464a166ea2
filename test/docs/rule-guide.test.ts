// The guide to writing rules is correct: each of its rules is parsed, a worker in process decides its requests, and its
// messages are compared literally.
//
// A block `yaml` is a file of rules; consecutive ones are the files of one folder. The blocks that follow are checked
// against them: `requests` (with SETTING=VALUE, at DATE TIME, a request with its answer, statistics NAME: COUNT N, ...,
// metadata JSON) and `problems`, the output of `check`.
import { readFileSync } from 'node:fs';
import test, { type ExecutionContext } from 'ava';
import {
  adviseOnRules,
  refuseMisplacedKeys,
} from '../../control-plane/authoring/advice/rule-advice.ts';
import { parseRuleDocument } from '../../shared/rules/document/document.ts';
import { applyAllowances } from '../../shared/rules/problem/allowance.ts';
import type { Problem } from '../../shared/rules/problem/problem.ts';
import { formatProblems } from '../../shared/rules/problem/problem-text.ts';
import { buildRuleSet } from '../../shared/rules/rule-set.ts';
import { type FencedBlock, findFencedBlocks } from '../support/fenced-blocks.ts';
import { createManualClock, type ManualClock } from '../support/manual-clock.ts';
import { startWorker, type WorkerInProcess } from '../support/worker-in-process.ts';

const guide = new URL('../../shared/rules/README.md', import.meta.url);
const options = { mergeDomains: false, sanitizeMetricDots: false };
const firstMoment = '2026-01-01 00:00:00';
const unlimited = 0xffff_ffff;

interface Example {
  readonly rules: readonly FencedBlock[];
  /** The claims about the rules. */
  readonly claims: FencedBlock[];
}

const examples = findExamples(findFencedBlocks(readFileSync(guide, 'utf8')));

function findExamples(blocks: readonly FencedBlock[]): Example[] {
  const found: Example[] = [];
  let rules: FencedBlock[] = [];
  for (const block of blocks) {
    const isClaim = block.language === 'requests' || block.language === 'problems';
    if (block.language === 'yaml') rules.push(block);
    else if (isClaim && rules.length > 0) found.push({ rules, claims: [block] });
    else if (isClaim) found.at(-1)?.claims.push(block);
    if (isClaim) rules = [];
  }
  if (rules.length > 0)
    throw new Error(`nothing is claimed of the rules at line ${rules[0]?.line}`);
  return found;
}

/** By name, as in a folder. */
function filesOf({ rules }: Example): Map<string, string> {
  const name = (index: number) => (rules.length === 1 ? 'rules.yaml' : `rules-${index + 1}.yaml`);
  return new Map(rules.map(({ text }, index) => [name(index), text]));
}

function problemsOf(example: Example): readonly Problem[] {
  const parsed = [...filesOf(example)].map(([name, text]) => parseRuleDocument(text, name));
  const documents = parsed.flatMap(({ document }) => (document === undefined ? [] : [document]));
  const own = parsed.flatMap(({ problems }) => problems);
  if (documents.length < parsed.length) return refuseMisplacedKeys(own);
  const built = buildRuleSet(documents, options);
  const later = built.ok ? built.warnings : built.problems;
  const files = [...filesOf(example)].map(([path, text]) => ({ path, text }));
  const all = [...own, ...later, ...adviseOnRules(documents)];
  const { problems, idle } = applyAllowances(all, files);
  return refuseMisplacedKeys([...problems, ...idle]);
}

/** A request of one or more descriptors, and the expected answer of each. */
function parseRequest(text: string, domain: string) {
  const descriptors = text.split(';').map((descriptor) => {
    const words = descriptor.trim().split(' ');
    const hits = words.filter((word) => /^[+-]\d+$/.test(word)).map(Number)[0];
    const entries = words
      .filter((word) => word.includes('='))
      .map((word) => ({
        key: word.slice(0, word.indexOf('=')),
        value: word.slice(word.indexOf('=') + 1),
      }));
    const isRefund = hits !== undefined && hits < 0;
    return {
      entries,
      ...(hits !== undefined && { hitsAddend: String(Math.abs(hits)) }),
      ...(isRefund && { isNegativeHits: true }),
    };
  });
  return { domain, descriptors };
}

interface Status {
  readonly code: string;
  readonly currentLimit?: unknown;
  readonly limitRemaining?: number;
  readonly durationUntilReset?: string;
}

interface Reply {
  readonly overallCode: string;
  readonly statuses: readonly Status[];
  readonly dynamicMetadata?: { readonly metadata?: unknown };
}

function describeStatus({ code, currentLimit, limitRemaining = 0 }: Status): string {
  if (code === 'OVER_LIMIT') return code;
  if (limitRemaining === unlimited) return `${code}, unlimited`;
  return currentLimit === undefined ? `${code}, no limit` : `${code}, ${limitRemaining} left`;
}

/** In the guide's notation; the reset is included only if the guide has it. */
function describeReply({ overallCode, statuses }: Reply, withReset: boolean): string {
  const parts = statuses.map((status) => {
    const reset = withReset ? `, reset in ${status.durationUntilReset}` : '';
    return describeStatus(status) + reset;
  });
  const isAnyOver = statuses.some(({ code }) => code === 'OVER_LIMIT');
  if (isAnyOver && overallCode === 'OK') parts.push('overall OK');
  return parts.join('; ');
}

async function ask(worker: WorkerInProcess, request: unknown): Promise<Reply> {
  const { http } = await worker.started;
  const answer = await fetch(`http://${http.text}/json`, {
    method: 'POST',
    body: JSON.stringify(request),
    signal: AbortSignal.timeout(60_000),
  });
  const text = await answer.text();
  if (answer.status !== 200 && answer.status !== 429) throw new Error(text);
  return JSON.parse(text) as Reply;
}

const wallMs = (moment: string) => Date.parse(`${moment.replace(' ', 'T')}Z`);

function turnTo(clock: ManualClock, moment: string): void {
  clock.advance(wallMs(moment) - clock.wallMs());
}

async function checkRequests(t: ExecutionContext, example: Example, claim: FencedBlock) {
  const lines = claim.text.split('\n').filter((line) => line !== '');
  const isSetting = (line: string) => line.startsWith('with ');
  const settings = lines.filter(isSetting).map((line) => line.slice(5).split('='));
  const clock = createManualClock(wallMs(firstMoment));
  const files = filesOf(example);
  const domain = /^domain: (.*)$/m.exec([...files.values()].join('\n'))?.[1] ?? '';
  const worker = await startWorker(t, {
    env: { BACKEND_TYPE: 'memory', ...Object.fromEntries(settings) },
    rules: files,
    clock,
  });
  let reply: Reply | undefined;
  for (const line of lines.filter((each) => !isSetting(each))) {
    const position = `${line} (of the block at line ${claim.line})`;
    const [request = '', answer] = line.split(' -> ');
    if (answer !== undefined) {
      reply = await ask(worker, parseRequest(request, domain));
      t.is(describeReply(reply, answer.includes('reset in')), answer, position);
    } else if (line.startsWith('at ')) turnTo(clock, line.slice(3));
    else if (line.startsWith('metadata ')) {
      t.deepEqual(reply?.dynamicMetadata?.metadata, JSON.parse(line.slice(9)), position);
    } else if (line.startsWith('statistics ')) await checkStatistics(t, worker, line);
    else t.fail(`not understood: ${position}`);
  }
}

async function checkStatistics(t: ExecutionContext, worker: WorkerInProcess, line: string) {
  const [, name, counts = ''] = /^statistics (\S+): (.*)$/.exec(line) ?? [];
  const page = (await worker.page('/stats')).split('\n');
  for (const count of counts.split(', ')) {
    const wanted = `ratelimit.service.rate_limit.${name}.${count.replace(' ', ': ')}`;
    const found = page.filter((each) => each.startsWith(`ratelimit.service.rate_limit.${name}.`));
    t.true(page.includes(wanted), `${wanted}, but there is:\n${found.join('\n')}`);
  }
}

for (const example of examples) {
  for (const claim of example.claims) {
    test(`the ${claim.language} at line ${claim.line} are as in the guide`, async (t) => {
      if (claim.language === 'requests') await checkRequests(t, example, claim);
      else t.is(formatProblems(problemsOf(example)), claim.text.trimEnd());
    });
  }
}

test("the guide's table has each key of the format", (t) => {
  const rows = readFileSync(guide, 'utf8').matchAll(
    /^\| `([a-z_]+)` \| (?:document|descriptor|rate)/gm,
  );
  const { problems } = parseRuleDocument(
    'domain: d\ndescriptors: [{x: 1, rate_limit: {x: 1}}]',
    'f',
  );
  const known = problems.flatMap(({ hint }) => hint?.match(/(?<=keys here: ).*/) ?? []);
  const names = known.flatMap((list) => list.split(/, | and /));
  t.true(names.length > 10, 'the parser names its keys');
  t.deepEqual([...rows].map(([, name]) => name).sort(), ['domain', 'name', ...names].sort());
});
