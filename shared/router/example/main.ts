// node main.ts: runs behind a proxy on this machine, which terminates TLS and does not compress.
import { startServing } from '../index.ts';
import { createBoardApp } from './app.ts';

const app = await createBoardApp({ trustedProxies: ['127.0.0.1', '::1'] });
const serving = await startServing(app, { host: 'localhost', port: 8000 });
process.stdout.write(`listening on ${serving.url}\n`);
process.once('SIGTERM', () => void serving.stop().then(() => process.exit(0)));
