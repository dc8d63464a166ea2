// Tests control planes that call each other over TLS, with certificates on both sides and a shared token.
import { once } from 'node:events';
import { get } from 'node:https';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { AppError } from '../../../shared/errors.ts';
import {
  caCertificate,
  clientCertificate,
  secondCa,
  serverCertificate,
  strangerCertificate,
} from '../../contract/grpc-transport-certificates.ts';
import { runInProcess } from '../../support/command-run.ts';
import {
  type ControlPlaneInProcess,
  createControlPlaneInProcess,
} from '../../support/control-plane-in-process.ts';
import { connectWorker } from '../../support/discovery-worker.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { startRedisServer } from '../../support/redis-server.ts';
import { createRulesFolder, ruleText } from '../../support/rules-folder.ts';

const token = 'p'.repeat(32);

/** Certificates, the shared token, and the settings of an admin port with TLS and client certificates. */
function writeFiles(t: ExecutionContext) {
  const files = createRulesFolder(t, {
    'ca.pem': caCertificate,
    'server.pem': serverCertificate.cert,
  });
  files.write('server.key', serverCertificate.key);
  files.write('client.pem', clientCertificate.cert);
  files.write('client.key', clientCertificate.key);
  files.write('token', `${token}\n`);
  const at = (name: string) => join(files.path, name);
  return {
    ...files,
    at,
    adminTls: [
      ...['--admin-tls-cert', at('server.pem'), '--admin-tls-key', at('server.key')],
      ...['--admin-tls-client-ca', at('ca.pem')],
    ],
    /** Options of commands. */
    certificates: ['--ca', at('ca.pem'), '--cert', at('client.pem'), '--key', at('client.key')],
    token: ['--token-file', at('token')],
  };
}

test('a rollout spans control planes that share certificates and a token, once they trust each other', async (t) => {
  const rules = createRulesFolder(t, { 'a.yaml': ruleText('first', 1) });
  const { write, at, adminTls, certificates, token: shown } = writeFiles(t);
  const access = [...certificates, ...shown];
  write('peers-ca.pem', strangerCertificate.cert);
  const ports = [await freePort(), await freePort()] as const;
  const redis = await startRedisServer(t);
  const create = (own: 0 | 1) =>
    createControlPlaneInProcess(t, {
      adminPort: ports[own],
      flags: [
        // An address that others can reach: without a token, no caller has access.
        ...['--admin-address', `0.0.0.0:${ports[own]}`],
        ...['--config-dir', rules.path, '--rollout', 'canary=50%,hold=1s', ...adminTls],
        ...['--peers', `https://127.0.0.1:${ports[1 - own]}`, '--peers-ca', at('peers-ca.pem')],
        ...['--peers-token-file', at('token'), '--record', `redis://${redis.url}`],
      ],
    });
  const planes = [await create(0), await create(1)] as const;
  await Promise.all(planes.map((plane) => plane.start()));
  const workers = planes.map(({ xdsAddress }, index) =>
    connectWorker(t, Number(xdsAddress.split(':')[1]), `worker-${index}`),
  );
  await eventually('both have the first', () => workers.every(({ sees }) => sees('first')));
  const ask = async (plane: ControlPlaneInProcess, ...command: readonly string[]) => {
    const url = ['--admin-url', plane.adminUrl.replace('http:', 'https:')];
    const { out, err } = await runInProcess([...command, '--json', ...url]);
    return out === '' ? { err } : JSON.parse(out);
  };

  rules.write('a.yaml', ruleText('second', 1));
  await eventually('the leader reports what it waits for', async () => {
    const states = await Promise.all(
      planes.map((plane) => ask(plane, 'rollout', 'status', ...access)),
    );
    return states.some((state) =>
      /does not answer \(.*self-signed certificate in certificate chain/.test(
        JSON.stringify(state),
      ),
    );
  });
  t.false(workers.some(({ sees }) => sees('second')));
  write('peers-ca.pem', caCertificate);
  await eventually('both have the second', () => workers.every(({ sees }) => sees('second')));
  await eventually('each speaks of the workers of both', async () => {
    const states = await Promise.all(planes.map((plane) => ask(plane, 'status', ...access)));
    return states.every((state) => state.workers?.inForce === 2);
  });
  t.regex(JSON.stringify(await ask(planes[0], 'status', ...certificates)), /401/);
  for (const plane of planes) {
    t.regex(plane.output(), /TLS: \S+ has changed and is used for questions to peers/);
    t.notRegex(plane.output(), /clear text to the peers/);
    t.false(plane.output().includes(token));
  }
});

test('a page that follows the events loses its connection when the CA of its certificate is removed', async (t) => {
  const rules = createRulesFolder(t, { 'a.yaml': ruleText('first', 1) });
  const { write, adminTls } = writeFiles(t);
  const flags = ['--config-dir', rules.path, ...adminTls];
  const plane = await createControlPlaneInProcess(t, { flags });
  await plane.start();
  const client = { ca: caCertificate, ...clientCertificate, checkServerIdentity: () => undefined };
  const call = get(`${plane.adminUrl.replace('http:', 'https:')}/events`, client);
  const [answer] = await once(call, 'response');
  const ended = once(answer.resume(), 'error');
  write('ca.pem', secondCa.cert);
  await ended;
  t.regex(plane.output(), /no CA in force has signed the client certificate/);
});

test('unusable files for peers end the start, and their setting is named', async (t) => {
  const rules = createRulesFolder(t, { 'a.yaml': ruleText('first', 1) });
  const { write, at } = writeFiles(t);
  write('short', 'short');
  write('garbage', 'garbage');
  const own = (cert: string, key: string) => ['--peers-cert', at(cert), '--peers-key', at(key)];
  const cases: [readonly string[], RegExp][] = [
    [['--peers-ca', at('none')], /--peers-ca: \S+none cannot be read/],
    [['--peers-ca', at('garbage')], /--peers-ca: \S+garbage is not a certificate/],
    [own('none', 'server.key'), /--peers-cert and --peers-key: \S+none cannot be read/],
    [own('server.pem', 'client.key'), /--peers-cert and --peers-key: .* cannot be used/],
    [['--peers-token-file', at('none')], /--peers-token-file: .* cannot be read: .*none/],
    [['--peers-token-file', at('short')], /--peers-token-file: .* at least 16 characters/],
  ];
  for (const [flags, message] of cases) {
    const all = ['--config-dir', rules.path, '--peers', 'https://127.0.0.1:1', ...flags];
    const plane = await createControlPlaneInProcess(t, { flags: all });
    const error = await t.throwsAsync(plane.start(), { instanceOf: AppError }, flags.join(' '));
    t.regex(error?.message ?? '', message);
  }
});

test('a token that is sent to peers in clear text is reported once, and the start continues', async (t) => {
  const rules = createRulesFolder(t, { 'a.yaml': ruleText('first', 1) });
  const { at } = writeFiles(t);
  const plane = await createControlPlaneInProcess(t, {
    flags: [
      ...['--config-dir', rules.path, '--peers', 'http://control-plane-2:18001'],
      ...['--peers-token-file', at('token')],
    ],
  });
  await plane.start();
  const logged = plane.output().match(/tokens travel in clear text to the peers http:\/\/control/g);
  t.is(logged?.length, 1);
});
