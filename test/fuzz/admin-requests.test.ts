// Sends the admin API requests that none of our clients would: each gets a specific problem, nothing unrequested is
// written, and none reveals a defect.
import { request as httpRequest } from 'node:http';
import test, { type ExecutionContext } from 'ava';
import { startAdminApi } from '../support/admin-api.ts';
import type { Random } from '../support/random.ts';
import { ruleText } from '../support/rules-folder.ts';
import { damageJson, damageText, strangeWords } from './damage.ts';
import dictionary from './dictionary.json' with { type: 'json' };
import { fuzz } from './fuzz-run.ts';
import { checkNamedProblem } from './named-problem.ts';

const startAdmin = (t: ExecutionContext) =>
  startAdminApi(t, {
    files: { 'shop.yaml': ruleText('shop', 1) },
    webhook: { secret: 'secret', secretFile: undefined },
  });

const paths = dictionary.paths;
const pathWords = [...dictionary.pathWords, 'x'.repeat(300), '?'.padEnd(9000, 'a=b&')];
const bodies: readonly unknown[] = [
  { yaml: ruleText('shop', 2), message: 'm' },
  { yaml: ruleText('new', 2) },
  { yaml: 'domain: "\\ud800"\ndescriptors:\n- key: k\n' },
  { yaml: 'domain: "a\\0\\nb"\ndescriptors:\n- key: k\n' },
  {
    files: [
      { path: 'a.yaml', yaml: ruleText('a', 1) },
      { path: '../b.yaml', yaml: '' },
    ],
  },
  { domain: 'shop', descriptors: [{ entries: [{ key: 'k', value: 'v' }] }] },
  { domain: 'shop', descriptor: [{ key: 'k', value: 'v' }] },
  {
    ...{ domain: 'shop', descriptors: [[{ key: 'k', value: 'v' }]], reason: 'r' },
    ...{ for: '1h' },
  },
  { revision: 'x', expectedRevision: 'y' },
];
const bodyWords = ['{', '}', '[', ']', '"', ':', ',', 'null', '1e999', '\\u0000', '\\ud800', '//'];
const methods = ['GET', 'GET', 'POST', 'POST', 'POST', 'PUT', 'PUT', 'DELETE', 'HEAD'];

type Sent = ReturnType<typeof toRequest>;

function toRequest(random: Random) {
  const given = random.pick(paths);
  const path = random.chance(0.3) ? damageText(random, given, pathWords) : given;
  const json = JSON.stringify(damageJson(random, random.pick(bodies))) ?? 'null';
  const isYaml = random.chance(0.2);
  const body = isYaml
    ? damageText(random, ruleText('shop', 2), ['"', '\\ud800', ':', '*a', '- '])
    : random.chance(0.3)
      ? damageText(random, json, bodyWords)
      : json;
  const word = () => random.pick(strangeWords).replaceAll(/[^\x20-\x7e]/g, '');
  const headers: Record<string, string> = {
    'content-type': isYaml
      ? 'application/yaml'
      : random.chance(0.9)
        ? 'application/json'
        : random.pick(['text/plain', 'a/b; c="', '']),
    ...(random.chance(0.2) && { 'if-match': random.pick(['*', '"x"', 'W/"x"', word()]) }),
    ...(random.chance(0.1) && { 'if-none-match': random.pick(['*', word()]) }),
    ...(random.chance(0.1) && { accept: word() }),
    ...(random.chance(0.1) && { authorization: random.pick(['Bearer', 'Bearer x y', word()]) }),
    ...(random.chance(0.1) && { 'x-request-id': word() }),
    ...(random.chance(0.05) && { origin: random.pick(['null', 'http://evil.example', word()]) }),
    ...(random.chance(0.1) && { 'x-hub-signature-256': random.pick(['sha256=', word()]) }),
    ...(random.chance(0.1) && { 'x-gitlab-token': word() }),
    ...(random.chance(0.05) && { 'content-encoding': random.pick(['gzip', 'br', word()]) }),
  };
  // Requests that an HTTP client would refuse to send are tested in requests.test.ts.
  const target = `/${path.slice(1)}`.replaceAll(/[^\x21-\x7e]/g, '_');
  return {
    method: random.chance(0.95) ? random.pick(methods) : random.pick(['OPTIONS', 'TRACE', 'PATCH']),
    path: target,
    body,
    headers,
  };
}

interface Reply {
  readonly status: number;
  readonly type: string;
  readonly headers: string;
  readonly text: string;
}

function send(port: number, { method, path, body, headers }: Sent): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({ host: '127.0.0.1', port, method, path, headers }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          type: response.headers['content-type'] ?? '',
          headers: JSON.stringify(response.headers),
          text,
        }),
      );
    });
    request.setTimeout(60_000, () => request.destroy(new Error('no answer')));
    request.on('error', reject);
    request.end(method === 'GET' || method === 'HEAD' ? '' : body);
  });
}

test.serial('any request of the admin API is answered, and none is a defect', async (t) => {
  const { port, log, rules, store } = await startAdmin(t);
  const statuses = new Map<number, number>();
  await fuzz(t, 'requests of the admin API', async (random) => {
    const sent = toRequest(random);
    const shown = JSON.stringify(sent).slice(0, 1000);
    let reply: Reply;
    try {
      reply = await send(port, sent);
    } catch (error) {
      throw new Error(`${shown}: ${error}`);
    }
    statuses.set(reply.status, (statuses.get(reply.status) ?? 0) + 1);
    if (reply.status >= 500 && reply.status !== 501 && reply.status !== 503) {
      throw new Error(
        `${reply.status} to ${shown}: ${reply.text.slice(0, 500)} ${log.lines.at(-1)}`,
      );
    }
    if (reply.headers.includes('x-injected')) throw new Error(`a header was put in by ${shown}`);
    if (reply.status < 400 || sent.method === 'HEAD') return;
    if (reply.type.includes('json')) {
      const { title, detail, status } = JSON.parse(reply.text);
      if (typeof title !== 'string' || status !== reply.status) throw new Error(reply.text);
      checkNamedProblem(String(detail ?? title));
      if (reply.text.length > 400_000) throw new Error(`${reply.text.length} characters`);
    } else checkNamedProblem(reply.text);
  });
  t.log(
    [...statuses]
      .sort()
      .map(([status, count]) => `${status}: ${count}`)
      .join(', '),
  );
  t.true((statuses.get(200) ?? 0) > 0 && (statuses.get(400) ?? 0) > 0);
  for (const line of log.lines) t.false(/was answered with 5|\n\s+at /.test(line), line);
  // The files are still rules files below their directory.
  for (const { path } of (await store.read()).files) t.regex(path, /^[\w.-]+\.yaml$/, rules.path);
});
