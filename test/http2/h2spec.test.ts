// Runs h2spec, the conformance checker for HTTP/2 servers, against the engine, including its strict cases.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import type { GrpcTls } from '../../worker/grpc/transport.ts';
import { serverCertificate } from '../contract/grpc-transport-certificates.ts';
import { startTransport } from '../contract/grpc-transport-fixture.ts';
import { runTool, testWith, toolMs } from '../support/installed-tool.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';

/** The number of cases in this release of h2spec; fewer means that some were not run. */
const caseCount = 146;
/** How long h2spec waits for each answer; failing cases wait this long. */
const answerSeconds = 15;

testWith(test, 'h2spec')('h2spec finds nothing wrong over cleartext', async (t) => {
  await check(t);
});

testWith(test, 'h2spec')('h2spec finds nothing wrong over TLS', async (t) => {
  await check(t, serverCertificate);
});

async function check(t: ExecutionContext, tls?: GrpcTls): Promise<void> {
  t.timeout(toolMs + 60_000);
  const { address, connect } = await startTransport(t, undefined, { tls });
  const folder = createTemporaryFolder(t);
  const file = join(folder, 'report.xml');
  const run = await runTool('h2spec', [
    '--strict',
    ...['--host', '127.0.0.1', '--port', `${address.port}`],
    ...['--timeout', `${answerSeconds}`, '--junit-report', file],
    ...(tls === undefined ? [] : ['--tls', '--insecure']),
  ]);
  t.not(run.code, undefined, run.output);
  const report = parseReport(readFileSync(file, 'utf8'));
  t.deepEqual(report, { total: caseCount, skipped: 0, failures: [] }, run.output);
  t.is(run.code, 0, run.output);
  const over = tls === undefined ? 'cleartext' : 'TLS';
  process.stderr.write(`h2spec over ${over}: ${report.total} of ${caseCount} cases passed\n`);
  if (tls === undefined)
    t.is((await (await connect()).call('/test.Echo/Echo', Buffer.of(1))).grpcStatus, 0);
}

/** JUnit XML as written by h2spec: a case contains an element unless it passed. */
function parseReport(xml: string) {
  const cases = [
    ...xml.matchAll(/<testcase package="([^"]*)" classname="([^"]*)"[^>]*>([\s\S]*?)<\/testcase>/g),
  ];
  const of = (kind: RegExp) => cases.filter(([, , , content]) => kind.test(content ?? ''));
  return {
    total: cases.length,
    skipped: of(/<skipped/).length,
    /** Section, title and complaint of each failed case. */
    failures: of(/<(failure|error)/).map(
      ([, section, title, complaint]) => `${section}: ${title}: ${complaint?.trim()}`,
    ),
  };
}
