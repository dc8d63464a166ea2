// The guide for users of other frameworks shows two sides: both are run, and must answer alike. Of the Python side only
// the methods are run, since endpoints needs a newer Python than many machines have.
import { execFile, spawnSync } from 'node:child_process';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import test from 'ava';
import type { FastifyInstance, InjectOptions } from 'fastify';
import { findFencedBlocks } from '../../test/support/fenced-blocks.ts';
import { ownedByFile } from '../../test/support/owner.ts';
import { createRouterFolder, writeFilesOf } from '../../test/support/router-folder.ts';
import { createTestClient } from './test-client.ts';

const root = join(import.meta.dirname, '..', '..');
const guide = readFileSync(new URL('docs/coming-from.md', import.meta.url), 'utf8');
const guarded = { authorization: 'Bearer t-ann' };
const folder = createRouterFolder(ownedByFile(test), ['fastify']);
writeFilesOf(guide, folder);
const usersOf = (from: string) => join(folder, from, 'controllers/users.ts');
copyFileSync(usersOf('endpoints'), usersOf('fastify'));

interface Shown {
  readonly method: string;
  readonly target: string;
  readonly body: string | undefined;
  readonly status: number;
  readonly json: unknown;
}

/** Lines such as `POST /users {"name":"ann"} -> 201 {"name":"ann"}`. */
function readRequests(from: string): readonly Shown[] {
  const block = findFencedBlocks(guide).find(({ language }) => {
    const [kind, ...applications] = language.split(' ');
    return kind === 'requests' && applications.includes(from);
  });
  const lines = (block?.text ?? '').trimEnd().split('\n');
  return lines.map((line) => {
    const [, method = '', target = '', body, status, json] =
      /^([A-Z]+) (\S+)(?: (\{.*?\}))? -> ([0-9]{3})(?: (.*))?$/.exec(line) ?? [];
    if (status === undefined) throw new Error(`not a request: ${line}`);
    return { method, target, body, status: Number(status), json: json && JSON.parse(json) };
  });
}

type Send = (
  request: Shown,
  headers: Readonly<Record<string, string>>,
) => Promise<{ readonly status: number; readonly text: string }>;

async function sendHere(from: string): Promise<Send> {
  const { send } = await createTestClient(join(folder, from, 'controllers'));
  return ({ method, target, body }, headers) =>
    send(method, target, { headers: withType(headers, body), body });
}

function withType(headers: Readonly<Record<string, string>>, body: string | undefined) {
  return body === undefined ? headers : { ...headers, 'content-type': 'application/json' };
}

async function importBefore<Application>(from: string): Promise<Application> {
  const url = pathToFileURL(join(folder, from, 'before.ts')).href;
  return ((await import(url)) as { before: Application }).before;
}

const sendTo: Readonly<Record<string, () => Promise<Send>>> = {
  async fastify() {
    const server = await importBefore<FastifyInstance>('fastify');
    return async ({ method, target, body }, headers) => {
      const options = { method, url: target, headers: withType(headers, body), body };
      const { statusCode, body: text } = await server.inject(options as InjectOptions);
      return { status: statusCode, text };
    };
  },
};

for (const from of ['endpoints', 'fastify']) {
  test(`what comes from ${from} answers what the guide shows, on both sides`, async (t) => {
    const requests = readRequests(from);
    t.true(requests.length > 4);
    const sides = [await sendHere(from), ...(sendTo[from] ? [await sendTo[from]()] : [])];
    for (const send of sides) {
      for (const request of requests) {
        const about = `${request.method} ${request.target}`;
        const { status, text } = await send(request, guarded);
        t.is(status, request.status, about);
        if (request.json !== undefined) t.deepEqual(JSON.parse(text), request.json, about);
        if (from !== 'endpoints') t.is((await send(request, {})).status, 401, about);
      }
    }
  });
}

/** The parts of endpoints that the guide's methods need. */
const standIn = `
import inspect, json, sys

class Controller:
    pass

class CallError(Exception):
    def __init__(self, code, message):
        self.code = code

def answer(method, positions, fields):
    handler = getattr(Default(), method)
    types = {name: one.annotation for name, one in inspect.signature(handler).parameters.items()}
    positions = [convert(text) for convert, text in zip(types.values(), positions)]
    fields = {name: types[name](value) for name, value in fields.items()}
    try:
        return [200, handler(*positions, **fields)]
    except CallError as error:
        return [error.code, None]

def answer_all():
    print(json.dumps([answer(*call) for call in json.load(sys.stdin)]))
`;

const hasPython = spawnSync('python3', ['--version']).status === 0;
const pythonTest = hasPython ? test : test.skip;

pythonTest('the Python of the guide answers what is shown, where its arguments are right', (t) => {
  const source = findFencedBlocks(guide).find(({ language }) => language === 'python')?.text;
  const right = readRequests('endpoints').filter(
    ({ target, status }) => status === 200 || (status === 404 && /\d/.test(target)),
  );
  t.deepEqual([...new Set(right.map(({ method, status }) => `${method} ${status}`))].sort(), [
    'GET 200',
    'GET 404',
    'POST 200',
  ]);
  const calls = right.map(({ method, target, body }) => {
    const { pathname, searchParams } = new URL(target, 'http://localhost');
    const fields = { ...Object.fromEntries(searchParams), ...(body && JSON.parse(body)) };
    return [method, pathname.split('/').slice(2), fields];
  });
  const program = `${standIn}\n${source}\nanswer_all()\n`;
  const { stdout, stderr } = spawnSync('python3', ['-c', program], {
    input: JSON.stringify(calls),
    encoding: 'utf8',
    timeout: 60_000,
  });
  t.is(stderr, '');
  const shown = right.map(({ status, json }) => [status, json ?? null]);
  t.deepEqual(JSON.parse(stdout), shown);
});

test('the TypeScript of the guide compiles', async (t) => {
  const compilerOptions = {
    ...{ module: 'nodenext', target: 'esnext', lib: ['esnext', 'dom'], types: ['node'] },
    ...{ strict: true, skipLibCheck: true, noEmit: true, allowImportingTsExtensions: true },
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions }));
  const compiler = join(root, 'node_modules', '.bin', 'tsc');
  const { stdout } = await promisify(execFile)(compiler, ['-p', folder]).catch(
    (error: { stdout: string }) => error,
  );
  t.is(stdout, '');
});
