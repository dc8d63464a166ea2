// Tests secrets in settings, in every common notation: they are in no message, warning, or list of settings.
import { execFile } from 'node:child_process';
import test from 'ava';
import { controlPlaneTable } from '../../../control-plane/server/settings/table.ts';
import { parseControlPlaneSettings } from '../../../control-plane/server/settings.ts';
import { parseGitAddress } from '../../../control-plane/server/store/git-address.ts';
import { readTokenFile } from '../../../control-plane/server/token-file.ts';
import { type Environment, type SettingsTable, toRows } from '../../../shared/settings/setting.ts';
import { readSecretFile } from '../../../shared/small-file.ts';
import { readTlsFiles } from '../../../shared/tls.ts';
import { createFileCredentials } from '../../../worker/counters/redis/credentials.ts';
import { workerTable } from '../../../worker/settings/table.ts';
import {
  findTlsFileProblems,
  findTokenFileProblems,
  parseWorkerSettings,
} from '../../../worker/settings.ts';
import { runInProcess } from '../../support/command-run.ts';
import { programFile } from '../../support/programs.ts';

const secret = 'S3cr3t';
const schemes = ['rediss', 'https', 'ssh', 'dns'];
const forms = [
  ...schemes.flatMap((scheme) => [
    `${scheme}://user:${secret}@host:6379`,
    `${scheme}://user:${secret}@host:6379/0`,
    `${scheme}://:${secret}@[::1]:6379/team/x.git?a=b`,
    `${scheme}://host:6379?password=${secret}`,
    `${scheme}://host:6379/0?db=1&token=${secret}#${secret}`,
    `${scheme}://user:${secret}`,
    `${scheme}://user:p@ss${secret},w/rd@host:6379`,
    `${scheme}://user:12,b@${secret}@host:6379`,
    `${scheme}:user:${secret}@host:1`,
  ]),
  `user:${secret}@host:6379`,
  `user:${secret}@host:team/x.git`,
  `user:${secret}@host`,
  `host:6380,password=${secret},ssl=True,abortConnect=False`,
  `host:6380, Password = ${secret} , ssl=True`,
  `host:6380,ssl=True,password=a,${secret},b:12`,
  `password=${secret},host:6380`,
  `host:6380;password=${secret}`,
  `host:6380?password=${secret}`,
  `host:6380/${secret}`,
  `host:6380:${secret}`,
  `mymaster,user:${secret}@host:26379,host-2:26379`,
  `mymaster,redis://user:${secret}@host:26379,redis://host-2:26379`,
  `host-1:6379,redis://user:${secret}@host-2:6379`,
  `host-1:6379,host-2:6379,password=${secret}`,
].flatMap((form) => [
  form,
  `  ${form}\t`,
  form.replace('@', ' @ '),
  encodeURIComponent(form),
  form.replace(':', '%3A').replace('@', '%40').replace('=', '%3D'),
]);
/** Certain secrets, which are hidden in every other setting as well. */
const certainForms = [
  `redis://user:${secret}@host:6379`,
  `https://user:${secret}`,
  `user : ${secret} @host:1`,
  `host:6380,password=${secret}`,
  encodeURIComponent(encodeURIComponent(`https://${secret}@host`)),
];

/** A secret in place of the path of the file that contains it. */
const fileForms = [secret, `Bearer ${secret}`, `a/${secret}=`, `-----BEGIN KEY-----\n${secret}\n`];

function listCases(table: SettingsTable): { readonly name: string; readonly form: string }[] {
  return toRows(table).flatMap(({ setting: { names, secret } }) =>
    names
      .slice(0, secret === 'no' ? 1 : undefined)
      .flatMap((name) =>
        (secret === 'no' ? certainForms : forms)
          .concat(secret === 'file' ? fileForms : [])
          .map((form) => ({ name, form })),
      ),
  );
}

const workers: readonly Environment[] = [
  { KVSTORE_URL: 'localhost:6379' },
  { REDIS_URL: 'localhost:6379', REDIS_TYPE: 'SENTINEL', REDIS_PERSECOND: 'true' },
  { REDIS_URL: 'localhost:6379', REDIS_TYPE: 'CLUSTER', USE_DOG_STATSD: 'true' },
  { BACKEND_TYPE: 'memcache', CONFIG_TYPE: 'GRPC_XDS_SOTW', USE_PROMETHEUS: 'true' },
];

test('a worker repeats no secret of a setting: in its messages, warnings and settings', async (t) => {
  // Alternating: a possible secret has more notations than there are workers, and each must be tried.
  for (const [turn, { name, form }] of listCases(workerTable).entries()) {
    const result = parseWorkerSettings({ ...workers[turn % workers.length], [name]: form });
    const files = result.ok ? [...result.tlsFiles, ...result.tokenFiles] : [];
    const shown = JSON.stringify([
      result.warnings,
      result.ok ? result.dump : result.problems,
      await findTlsFileProblems(files),
      await findTokenFileProblems(files),
      await createFileCredentials(form)().then(String, (error: Error) => error.message),
    ]);
    if (shown.includes(secret)) t.fail(`${name}=${form}: ${shown}`);
  }
  t.pass();
});

test('a control plane repeats no secret of a setting', async (t) => {
  const base: Environment = { HOME: '/', RATELANE_CONFIG_DIR: '/rules' };
  for (const form of fileForms) {
    const output = JSON.stringify([
      await readTlsFiles({ ca: undefined, cert: import.meta.filename, key: form }),
      await readTokenFile(form),
      await readSecretFile(form, 9).catch((error: Error) => error.message),
    ]);
    if (output.includes(secret)) t.fail(`${form}: ${output}`);
  }
  for (const { name, form } of listCases(controlPlaneTable)) {
    const result = parseControlPlaneSettings({ ...base, [name]: form });
    const shown = JSON.stringify([result.warnings, !result.ok && result.problems]);
    if (shown.includes(secret)) t.fail(`${name}=${form}: ${shown}`);
  }
  for (const form of forms.filter((each) => !/host(?::|%3A)6380(?:\/|%2F|:|%3A)/.test(each))) {
    const git = parseGitAddress(form);
    const shown = git.ok ? git.address.shown : git.reason;
    if (shown.includes(secret)) t.fail(`${form}: ${shown}`);
  }
  t.pass();
});

test('no error about a command line repeats a secret from it', async (t) => {
  const form = `redis://user:${secret}@host:6379`;
  const run = (...args: string[]) =>
    runInProcess(args, { environment: { RATELANE_ADMIN_URL: form } });
  const results = await Promise.all([
    run('status'),
    run('status', '--admin-url', `http://host:1?token=${secret}`),
    run(`--admin-rul=${form}`),
    run('status', `--admin-rul=${form}`),
    run('status', form, '--wait', form),
    run(form),
    run('watch', '--once', '--xds', form),
    run('check', form),
    run('diff', '--git', `user:${secret}@host:x`, 'HEAD', 'HEAD'),
    run('compare', '--reference', form, '--candidate', form, '--replay', form),
  ]);
  for (const { code, out, err } of results) {
    t.not(code, 0);
    t.not(err, '');
    t.false((out + err).includes(secret), out + err);
  }
  const ask = (['client', 'worker'] as const).flatMap((program) =>
    [[form], [`--dial_strin=${form}`], ['-timeout', form], [`-json=${form}`]].map(
      (args) =>
        new Promise<string>((resolve) => {
          execFile(process.execPath, [programFile(program), ...args], (_error, out, err) =>
            resolve(out + err),
          );
        }),
    ),
  );
  for (const text of await Promise.all(ask)) {
    t.not(text, '');
    t.false(text.includes(secret), text);
  }
});
