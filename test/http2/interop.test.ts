// Tests the HTTP/2 engine with third-party clients: grpc-js, Go's gRPC, nghttp2 and curl. A real Envoy is in
// test/e2e/envoy.test.ts.
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:http2';
import { join } from 'node:path';
import {
  type ClientOptions,
  credentials,
  Metadata,
  makeClientConstructor,
  type ServiceError,
} from '@grpc/grpc-js';
import test, { type ExecutionContext } from 'ava';
import { ownPath } from '../../shared/own-files.ts';
import { loadProtos, protoFiles } from '../../shared/wire/protos.ts';
import { startGrpcServices } from '../contract/grpc-services-fixture.ts';
import { caCertificate, serverCertificate } from '../contract/grpc-transport-certificates.ts';
import { toMessage } from '../support/http2-frames.ts';
import { runTool, testWith } from '../support/installed-tool.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';

const protos = loadProtos();

testWith(test, 'proto-set')('reflection describes the interfaces as they are', async (t) => {
  const descriptors = ownPath('proto/descriptors.json');
  const { code, output } = await runTool('proto-set', [ownPath('proto'), ...protoFiles]);
  t.is(code, 0, output);
  if (process.env['REWRITE'] === '1') writeFileSync(descriptors, output);
  t.is(output, readFileSync(descriptors, 'utf8'), 'REWRITE=1 compiles them again');
});

const method = protos.rateLimitService.ShouldRateLimit;
const grpcHeaders = ['content-type: application/grpc', 'te: trailers'];

async function start(t: ExecutionContext, { tls = false } = {}) {
  const services = await startGrpcServices(t, tls ? serverCertificate : undefined);
  const folder = createTemporaryFolder(t);
  const [ca, request, answer] = ['ca.pem', 'request', 'answer'].map((name) => join(folder, name));
  if (ca === undefined || request === undefined || answer === undefined) throw new Error();
  writeFileSync(ca, caCertificate);
  const message = method.requestSerialize({
    domain: 'shop',
    descriptors: [{ entries: [] }],
  } as never);
  writeFileSync(request, toMessage(message));
  const url = `${tls ? 'https' : 'http'}://localhost:${services.port}`;
  return { ...services, files: { ca, request, answer }, url };
}

interface RateLimitClient {
  ShouldRateLimit(
    request: object,
    metadata: Metadata,
    options: object,
    done: (error: ServiceError | null, answer: unknown) => void,
  ): { cancel(): void };
}

function createClient(
  t: ExecutionContext,
  port: number,
  tls: boolean,
  options: ClientOptions = {},
) {
  const channel = tls
    ? credentials.createSsl(Buffer.from(caCertificate))
    : credentials.createInsecure();
  const Constructor = makeClientConstructor(protos.rateLimitService as never, 'Client');
  const client = new Constructor(`localhost:${port}`, channel, options);
  t.teardown(() => client.close());
  const { ShouldRateLimit } = client as unknown as RateLimitClient;
  return (domain: string, metadata = new Metadata(), callOptions = {}) =>
    new Promise<string>((resolve, reject) => {
      ShouldRateLimit.call(
        client,
        { domain, descriptors: [{ entries: [{ key: 'k', value: 'v' }] }] },
        metadata,
        callOptions,
        (error, answer) => {
          if (error !== null) reject(error);
          else {
            const { responseHeadersToAdd } = answer as {
              responseHeadersToAdd: { value: string }[];
            };
            resolve(responseHeadersToAdd[0]?.value ?? '');
          }
        },
      );
    });
}

for (const tls of [false, true]) {
  const over = tls ? 'over TLS' : 'over cleartext';

  test(`grpc-js: thousands of calls at once ${over}`, async (t) => {
    const { port } = await start(t, { tls });
    const call = createClient(t, port, tls);
    for (let round = 0; round < 3; round++) {
      const domains = Array.from({ length: 1000 }, (_, index) => `domain ${round} ${index}`);
      t.deepEqual(await Promise.all(domains.map((domain) => call(domain))), domains);
    }
  });

  testWith(test, 'grpcurl')(`grpcurl decides and reads health ${over}`, async (t) => {
    const { port, files } = await start(t, { tls });
    const grpcurl = (...args: string[]) =>
      runTool('grpcurl', [
        ...(tls ? ['-cacert', files.ca] : ['-plaintext']),
        ...['-authority', 'localhost'],
        ...args.slice(0, -1),
        `127.0.0.1:${port}`,
        ...args.slice(-1),
      ]);
    // The request format is known only from reflection.
    const decided = await grpcurl(
      ...['-d', '{"domain":"shop","descriptors":[{"entries":[{"key":"k","value":"v"}]}]}'],
      'envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
    );
    t.is(decided.code, 0, decided.output);
    t.like(JSON.parse(decided.output), {
      overallCode: 'OK',
      responseHeadersToAdd: [{ key: 'x-domain', value: 'shop' }],
    });
    const health = await grpcurl('-d', '{"service":"ratelimit"}', 'grpc.health.v1.Health/Check');
    t.deepEqual(JSON.parse(health.output), { status: 'SERVING' });
    const unknown = await grpcurl('-d', '{"service":"nobody"}', 'grpc.health.v1.Health/Check');
    t.not(unknown.code, 0);
    t.regex(unknown.output, /Code: NotFound\s+Message: unknown service/);
    const watch = await grpcurl('-max-time', '10', '-d', '{}', 'grpc.health.v1.Health/Watch');
    t.regex(watch.output, /"SERVING"[\s\S]*Code: DeadlineExceeded/);
  });

  testWith(test, 'h2load')(`h2load is answered whatever it sends ${over}`, async (t) => {
    const { files, url } = await start(t, { tls });
    const load = await runTool('h2load', [
      ...['-n', '5000', '-c', '10', '-m', '100', '-d', files.request],
      ...grpcHeaders.flatMap((header) => ['-H', header]),
      `${url}${method.path}`,
    ]);
    t.is(load.code, 0, load.output);
    t.regex(load.output, /5000 succeeded, 0 failed, 0 errored, 0 timeout/);
    t.regex(load.output, /status codes: 5000 2xx/);
  });

  testWith(test, 'curl')(`curl gets decisions and refusals ${over}`, async (t) => {
    const { files, url } = await start(t, { tls });
    const curl = (...args: string[]) =>
      runTool('curl', [
        '--silent',
        '--http2-prior-knowledge',
        '--cacert',
        files.ca,
        '--max-time',
        '30',
        ...args,
      ]);
    const decided = await curl(
      ...['--include', '--output', files.answer, '--dump-header', '-'],
      ...['--data-binary', `@${files.request}`],
      ...grpcHeaders.flatMap((header) => ['--header', header]),
      `${url}${method.path}`,
    );
    t.is(decided.code, 0, decided.output);
    t.regex(decided.output, /^HTTP\/2 200 [\s\S]*\r\ngrpc-status: 0\r\n/);
    t.true(readFileSync(files.answer).includes('shop'));

    const page = await curl('--include', url);
    t.regex(page.output, /^HTTP\/2 405 /);
    t.regex(page.output, /this port speaks gRPC/);
    const head = await curl('--head', url);
    t.is(head.code, 0, head.output);
    t.regex(head.output, /^HTTP\/2 405 /);
    const form = await curl('--include', '--data', 'a=b', url);
    t.regex(form.output, /^HTTP\/2 415 /);
  });
}

for (const headerTableSize of [0, 2_048, 4_096, 65_536]) {
  test(`Node's own client with a header table of ${headerTableSize} bytes gets answers and refusals`, async (t) => {
    const { port, files } = await start(t);
    const session = connect(`http://localhost:${port}`, { settings: { headerTableSize } });
    t.teardown(() => session.destroy());
    // Each call gets the error, too.
    session.on('error', () => {});
    await once(session, 'remoteSettings', { signal: AbortSignal.timeout(60_000) });
    const call = async (method: string) => {
      const stream = session.request({
        ':method': 'POST',
        ':path': `/envoy.service.ratelimit.v3.RateLimitService/${method}`,
        'content-type': 'application/grpc',
        te: 'trailers',
      });
      let grpcStatus: unknown;
      for (const event of ['response', 'trailers']) {
        stream.on(event, (headers) => {
          grpcStatus ??= headers['grpc-status'];
        });
      }
      stream.end(readFileSync(files.request)).resume();
      await once(stream, 'close', { signal: AbortSignal.timeout(60_000) });
      return grpcStatus;
    };
    t.deepEqual(
      [await call('ShouldRateLimit'), await call('Nothing'), await call('ShouldRateLimit')],
      ['0', '12', '0'],
    );
    session.settings({ headerTableSize: 100 });
    t.is(await call('Nothing'), '12');
    session.settings({ headerTableSize: 0 });
    t.deepEqual([await call('Nothing'), await call('ShouldRateLimit')], ['12', '0']);
  });
}

test('grpc-js: metadata that changes with every call', async (t) => {
  const { port } = await start(t);
  const call = createClient(t, port, false);
  for (let index = 0; index < 500; index++) {
    const metadata = new Metadata();
    metadata.set('x-trace', `trace ${index}`);
    metadata.set(`x-name-${index % 50}`, 'v'.repeat(index));
    metadata.set('x-bytes-bin', Buffer.alloc(index % 100, index));
    t.is(await call(`${index}`, metadata), `${index}`);
  }
});

testWith(test, 'nghttp')('nghttp is refused in words, with its tree of priorities', async (t) => {
  const { url } = await start(t);
  const run = await runTool('nghttp', ['--verbose', url]);
  t.is(run.code, 0, run.output);
  t.regex(run.output, /send PRIORITY frame/);
  t.regex(run.output, /:status: 405/);
  t.regex(run.output, /this port speaks gRPC/);
  t.notRegex(run.output, /recv (RST_STREAM|GOAWAY)/);
});
