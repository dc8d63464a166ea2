// The part of the gRPC transport contract that is about what is really carried: decisions, health
// watches and reflection, as the client library of gRPC sees them.
import { credentials, makeClientConstructor, type ServiceError, status } from '@grpc/grpc-js';
import type { ExecutionContext } from 'ava';
import { loadProtos } from '../../shared/wire/protos.ts';
import { waitUntil } from '../support/wait-until.ts';
import { startGrpcServices } from './grpc-services-fixture.ts';
import type { Check } from './grpc-transport-fixture.ts';

interface Stream extends NodeJS.EventEmitter {
  write(message: object): void;
  end(): void;
  cancel(): void;
}

interface ServiceClient {
  ShouldRateLimit(
    request: object,
    done: (error: ServiceError | null, answer: object) => void,
  ): void;
  Watch(request: object): Stream;
  ServerReflectionInfo(): Stream;
}

const protos = loadProtos();

export function checkServices(check: Check): void {
  async function start(t: ExecutionContext) {
    const services = await startGrpcServices(t);
    return {
      ...services,
      connect(service: object) {
        const Client = makeClientConstructor(service as never, 'Client');
        const client = new Client(`127.0.0.1:${services.port}`, credentials.createInsecure());
        t.teardown(() => client.close());
        return client as unknown as ServiceClient;
      },
    };
  }

  check('a decision is carried to the client library and back', async (t) => {
    const client = (await start(t)).connect(protos.rateLimitService);
    for (let descriptors = 1; descriptors < 50; descriptors += 7) {
      const request = {
        domain: `domain ${descriptors}`,
        descriptors: Array.from({ length: descriptors }, (_, index) => ({
          entries: [{ key: 'key', value: `value ${index}` }],
        })),
      };
      const answer = await new Promise<Record<string, unknown>>((resolve, reject) => {
        client.ShouldRateLimit(request, (error, message) =>
          error === null ? resolve(message as Record<string, unknown>) : reject(error),
        );
      });
      t.is((answer['statuses'] as unknown[]).length, descriptors);
      t.like(answer['responseHeadersToAdd'], { 0: { value: request.domain } });
    }
  });

  check('callers of former versions are refused, and the log says what to set', async (t) => {
    const { connect, log } = await start(t);
    for (const service of [
      'envoy.service.ratelimit.v2.RateLimitService',
      'pb.lyft.ratelimit.RateLimitService',
    ]) {
      const former = {
        ...protos.rateLimitService.ShouldRateLimit,
        path: `/${service}/ShouldRateLimit`,
      };
      const client = connect({ ShouldRateLimit: former });
      const firstMs = performance.now();
      for (let index = 0; index < 20; index++) {
        const error = await new Promise<ServiceError | null>((resolve) => {
          client.ShouldRateLimit({ domain: 'd' }, resolve);
        });
        t.is(error?.code, status.UNIMPLEMENTED);
        t.is(error?.details, `unknown service ${service}`);
      }
      const warnings = log.lines.filter(
        (line) => line.startsWith('warning ') && line.includes(service),
      );
      t.regex(warnings[0] ?? '', /transport_api_version: V3/);
      // Then once a second, with how many there were.
      const seconds = (performance.now() - firstMs) / 1_000;
      t.true(warnings.length <= 1 + seconds, `${warnings.length} warnings in ${seconds} s`);
    }
  });

  check('a watch of health gets each change at once, and ends with the server', async (t) => {
    const { connect, health, server } = await start(t);
    const client = connect(protos.healthService);
    const watches = Array.from({ length: 5 }, () => {
      const seen: number[] = [];
      const watch = client.Watch({ service: 'ratelimit' });
      const ended = new Promise<ServiceError>((resolve) => watch.on('error', resolve));
      watch.on('data', (message: { status: number }) => seen.push(message.status));
      return { watch, seen, ended };
    });
    for (const [index, expected] of [1, 2, 1, 2].entries()) {
      if (index > 0) health.set('store', expected === 1);
      const isSeen = () => watches.every(({ seen }) => seen.length > index);
      t.true(await waitUntil(isSeen, 60_000));
      t.true(watches.every(({ seen }) => seen.at(-1) === expected));
    }
    watches[0]?.watch.cancel();
    t.is((await watches[0]?.ended)?.code, status.CANCELLED);
    await server.stop(10_000);
    for (const { ended } of watches.slice(1)) t.is((await ended).code, status.UNAVAILABLE);
    t.deepEqual(watches[0]?.seen, [1, 2, 1, 2]);
  });

  check('reflection lists the services and answers as often as it is asked', async (t) => {
    const { connect } = await start(t);
    const stream = connect(protos.reflectionService).ServerReflectionInfo();
    const answers: Record<string, unknown>[] = [];
    stream.on('data', (message: Record<string, unknown>) => answers.push(message));
    const ended = new Promise((resolve) => stream.on('end', resolve));
    const symbol = 'envoy.service.ratelimit.v3.RateLimitService';
    for (let index = 0; index < 20; index++) {
      stream.write({ listServices: '*' });
      stream.write({ fileContainingSymbol: symbol });
      t.true(await waitUntil(() => answers.length === 2 * (index + 1), 60_000));
    }
    stream.end();
    await ended;
    const list = answers[38]?.['listServicesResponse'] as { service: { name: string }[] };
    t.true(list.service.some(({ name }) => name === symbol));
    const files = answers[39]?.['fileDescriptorResponse'] as { fileDescriptorProto: Buffer[] };
    t.true(Buffer.concat(files.fileDescriptorProto).includes('ShouldRateLimit'));
  });
}
