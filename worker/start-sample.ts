// `npm start`: a worker on the sample rules with counters in its own memory, and what to try on it.
// A setting of the environment wins over the sample's.
import { fileURLToPath } from 'node:url';
import { runWorker } from './run-worker.ts';
import type { WorkerAddresses } from './worker.ts';

const sample = {
  BACKEND_TYPE: 'memory',
  RUNTIME_ROOT: fileURLToPath(new URL('../compose', import.meta.url)),
  RUNTIME_APPDIRECTORY: 'rules',
  RUNTIME_WATCH_ROOT: 'false',
  DISABLE_STATS: 'true',
};

const body = '{"domain":"shop","descriptors":[{"entries":[{"key":"customer","value":"ada"}]}]}';

function toInvitation({ http, grpc, debug }: WorkerAddresses): string {
  const json = `http://localhost:${http.port}/json`;
  return `
Ratelane decides: gRPC on port ${grpc.port}, HTTP on port ${http.port}, debug pages on port ${debug.port}.
Its rules are compose/rules/*.yaml: customer ada may make three requests a minute. Try, in another
terminal and within one minute:

1. One request. Expect 200, with "limitRemaining":2.
   curl -i -d '${body}' ${json}

2. Three more, in one line. Expect 200, 200, and 429 for the one that is over the limit.
   curl -s -o /dev/null -w '%{http_code}\\n' -d '${body}' '${json}?[1-3]'

3. What happened. Expect total_hits 4, over_limit 1.
   curl -s http://localhost:${debug.port}/stats | grep shop.customer

Then change requests_per_unit in compose/rules/shop.yaml and ask again: it takes effect at once.
Ctrl-C stops it.
`;
}

await runWorker({ ...sample, ...process.env }, (addresses) => {
  process.stdout.write(toInvitation(addresses));
});
