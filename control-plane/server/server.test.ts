// The order in which a control plane stops.
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import test from 'ava';
import { type Clock, systemClock } from '../../shared/clock.ts';
import { eventually } from '../../test/support/eventually.ts';
import { listenFor } from '../../test/support/listen.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { createTemporaryFolder } from '../../test/support/temporary-folder.ts';
import { createControlPlane, stopTimeoutMs } from './server.ts';
import { parseControlPlaneSettings } from './settings.ts';

test('the admin port closes while the record is handed over, so that the whole stop stays within its limit', async (t) => {
  const sockets = new Set<Socket>();
  const silentPort = await listenFor(
    t,
    createServer((socket) => sockets.add(socket.resume())),
  );
  const parsed = parseControlPlaneSettings({
    RATELANE_GIT: `http://127.0.0.1:${silentPort}/rules.git`,
    RATELANE_STATE_DIR: join(createTemporaryFolder(t), 'state'),
    RATELANE_XDS_ADDRESS: '127.0.0.1:0',
    RATELANE_ADMIN_ADDRESS: '127.0.0.1:0',
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  let isFrozen = false;
  const clock: Clock = {
    ...systemClock,
    after: (ms, task) => (isFrozen ? () => {} : systemClock.after(ms / 50, task)),
  };
  const log = createRecordedLog();
  const plane = createControlPlane({
    ...{ settings: parsed.settings, log, auditLog: log, clock },
    environment: { PATH: process.env['PATH'] },
  });
  const stopping = new AbortController();
  const started = plane.start(stopping.signal);
  const findAdmin = () => /Admin API on (http:\S+);/.exec(log.lines.join('\n'))?.[1];
  await eventually('the admin port is open', () => findAdmin() !== undefined);
  await eventually('the remote is asked', () => sockets.size >= 2);
  stopping.abort();
  await started;
  // The record is still being read, and nothing ends that.
  isFrozen = true;
  const stopped = plane.stop();
  await eventually('it takes no connections', () =>
    fetch(`${findAdmin()}/healthz`).then(
      () => false,
      () => true,
    ),
  );
  const [ofRecord] = sockets;
  t.false(ofRecord?.destroyed, 'the record is being read still');
  for (const socket of sockets) socket.destroy();
  await stopped;
  t.is(stopTimeoutMs, 6_000);
});
