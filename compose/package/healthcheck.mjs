// The image's health check: exit code 0 when the program of this container says that it is healthy.
// Whichever of the two listens at its address is asked. Plain JavaScript, since it is not built.
import { get as getHttp } from 'node:http';
import { get as getHttps } from 'node:https';

const timeoutMs = 4_000;
const { PORT: port = '8080', HTTP_SERVER_USE_TLS: workerTls = 'false' } = process.env;
const { RATELANE_ADMIN_ADDRESS: adminAddress = ':18001', RATELANE_ADMIN_TLS_CERT: adminTls = '' } =
  process.env;
const adminPort = adminAddress.slice(adminAddress.lastIndexOf(':') + 1);

const answers = await Promise.all([
  ask(port, /^(1|t|true)$/i.test(workerTls)),
  ask(adminPort, adminTls !== ''),
]);
process.exitCode = answers.includes('healthy') ? 0 : 1;
process.stdout.write(`worker: ${answers[0]}, control plane: ${answers[1]}\n`);

/** Never rejects. */
function ask(onPort, isTls) {
  return new Promise((resolve) => {
    const get = isTls ? getHttps : getHttp;
    const request = get({
      host: '127.0.0.1',
      port: onPort,
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
