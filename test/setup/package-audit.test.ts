// Tests npm's audit of our own lock file with real requests to a registry of the test.
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { listenFor } from '../support/listen.ts';
import { auditPackages } from './package-audit.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** Flags of npm: this registry, and no cached answer of another one. */
async function serveAdvisories(
  t: ExecutionContext,
  answer: { readonly status: number; readonly body: unknown },
): Promise<string[]> {
  const server = createServer((request, response) => {
    request.resume();
    const isAudit = request.url?.endsWith('/advisories/bulk') === true;
    response.writeHead(isAudit ? answer.status : 404, { 'content-type': 'application/json' });
    response.end(JSON.stringify(isAudit ? answer.body : {}));
  });
  const port = await listenFor(t, server);
  const cache = mkdtempSync(join(tmpdir(), 'package-audit-'));
  t.teardown(() => rmSync(cache, { recursive: true, force: true }));
  return [`--registry=http://127.0.0.1:${port}`, `--cache=${cache}`];
}

function advisory(severity: string) {
  return {
    fastify: [
      {
        id: 1,
        url: 'https://advisories.example/1',
        title: 'A hole',
        severity,
        vulnerable_versions: '*',
        cwe: [],
        cvss: { score: 9, vectorString: null },
      },
    ],
  };
}

test('a package without known vulnerabilities is sound', async (t) => {
  const flags = await serveAdvisories(t, { status: 200, body: {} });
  t.deepEqual(await auditPackages(root, flags), { kind: 'sound', noted: [] });
});

test('a vulnerability of level high is reported with its package and a link', async (t) => {
  const flags = await serveAdvisories(t, { status: 200, body: advisory('high') });
  const audit = await auditPackages(root, flags);
  t.is(audit.kind, 'vulnerable');
  t.regex(
    audit.kind === 'vulnerable' ? audit.found.join() : '',
    /^fastify .*\(high\): A hole https/,
  );
});

test('a vulnerability of a lower level is noted, and is not a failure', async (t) => {
  const flags = await serveAdvisories(t, { status: 200, body: advisory('moderate') });
  const audit = await auditPackages(root, flags);
  t.is(audit.kind, 'sound');
  t.regex(audit.kind === 'sound' ? audit.noted.join() : '', /^fastify .*\(moderate\)/);
});

test('a registry without a list of vulnerabilities does not answer, which is not "sound"', async (t) => {
  const flags = await serveAdvisories(t, { status: 405, body: '' });
  const audit = await auditPackages(root, flags);
  t.is(audit.kind, 'unanswered');
  t.regex(audit.kind === 'unanswered' ? audit.reason : '', /^405 /);
});

test('nor does a registry that cannot be reached', async (t) => {
  const flags = await serveAdvisories(t, { status: 200, body: {} });
  const audit = await auditPackages(root, [...flags, '--registry=http://127.0.0.1:9']);
  t.is(audit.kind, 'unanswered');
  t.regex(audit.kind === 'unanswered' ? audit.reason : '', /ECONNREFUSED/);
});
