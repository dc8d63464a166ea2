// The image's health check: exit code 0 when the program of this container is healthy.
// Whichever of the two listens at its address is asked. Plain JavaScript, since it is not built.
import { readFileSync } from 'node:fs';
import { get as getHttp } from 'node:http';
import { get as getHttps } from 'node:https';

const timeoutMs = 4_000;

/** Where a worker and a control plane with these variables answer. `words`: the command line of the container, since a flag
 * wins over its variable. */
export function findTargets(environment, words) {
  const { PORT: port = '8080', HOST: host = '', HTTP_SERVER_USE_TLS: tls = 'false' } = environment;
  const address =
    findFlag(words, 'admin-address') || environment.RATELANE_ADMIN_ADDRESS || ':18001';
  const certificate = findFlag(words, 'admin-tls-cert') ?? environment.RATELANE_ADMIN_TLS_CERT;
  const colon = address.lastIndexOf(':');
  return [
    { host: toReachable(host), port, isTls: /^(1|t|true)$/i.test(tls) },
    {
      host: toReachable(address.slice(0, colon)),
      port: address.slice(colon + 1),
      isTls: Boolean(certificate),
    },
  ];
}

/** `--name value` or `--name=value`, also with one dash; the last one counts. */
function findFlag(words, name) {
  let value;
  for (const [index, word] of words.entries()) {
    const [, given, inline] = /^--?([a-z-]+)(?:=(.*))?$/s.exec(word) ?? [];
    if (given === name) value = inline ?? words[index + 1];
  }
  return value;
}

/** An address on which the program listens that has this one, such as `[::]`. */
function toReachable(host) {
  const plain = host.replace(/^\[|\]$/g, '');
  if (plain === '' || plain === '0.0.0.0') return '127.0.0.1';
  return plain === '::' ? '::1' : plain;
}

/** Never rejects. */
function ask({ host, port, isTls }) {
  return new Promise((resolve) => {
    const get = isTls ? getHttps : getHttp;
    const request = get({
      host,
      port,
      path: '/healthcheck',
      timeout: timeoutMs,
      // The certificate is for other names than this one, and nothing secret is sent.
      rejectUnauthorized: false,
    });
    request.once('response', (response) => {
      resolve(response.statusCode === 200 ? 'healthy' : `status ${response.statusCode}`);
      request.destroy();
    });
    request.once('timeout', () => request.destroy(new Error('no answer')));
    request.once('error', (error) => resolve(error.message));
  });
}

/** The words that started the container; none where its first process is not the container's own. */
function readCommandLine() {
  try {
    return readFileSync('/proc/1/cmdline', 'utf8').split('\0');
  } catch {
    return [];
  }
}

if (import.meta.main) {
  const answers = await Promise.all(findTargets(process.env, readCommandLine()).map(ask));
  process.exitCode = answers.includes('healthy') ? 0 : 1;
  process.stdout.write(`worker: ${answers[0]}, control plane: ${answers[1]}\n`);
}
