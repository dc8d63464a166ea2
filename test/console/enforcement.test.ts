// Tests what the console shows while callers get answers other than those of the rules, with a real store that becomes
// unreachable.
import test from 'ava';
import { closeBrowser, observe, testWithBrowser } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { startWorker } from '../support/worker-in-process.ts';
import { fastClock, readPage, sampleRules, shows, startConsole, visit } from './console-fixture.ts';

const browserTest = testWithBrowser(test.serial);
test.after.always(closeBrowser);

browserTest(
  'while the store is unreachable, every page shows what callers get, and the minute shows when it began and ended',
  async (t) => {
    const served = await startConsole(t, { 'd.yaml': sampleRules });
    const redis = await startRedisServer(t);
    const worker = await startWorker(t, {
      clock: fastClock,
      env: {
        CONFIG_TYPE: 'GRPC_XDS_SOTW',
        CONFIG_GRPC_XDS_SERVER_URL: served.plane.xdsAddress,
        CONFIG_GRPC_XDS_NODE_ID: 'w-1',
        REDIS_SOCKET_TYPE: 'tcp',
        REDIS_URL: redis.url,
        KVSTORE_FAILURE_MODE: 'allow',
      },
    });
    await worker.decide('customer=ada');
    const { page, complaints } = await visit(t, served, 'rules?domain=d');
    await shows(page, /3 per year/);
    t.notRegex(await readPage(page), /Store/);
    await redis.kill();
    await worker.decide('customer=ada');
    const sentence =
      /Store unreachable since \d\d:\d\d: all requests are allowed, nothing is counted/;
    await shows(page, sentence);
    t.regex(await page.locator('.verdict').innerText(), /not enforced/);
    await eventually('it is in the activity', async () =>
      (await served.plane.fetch('/activity')).body.deeds.some(({ what }: { what: string }) =>
        what.startsWith('Store unreachable: all requests are allowed'),
      ),
    );
    const { stderr } = await served.plane.run('status');
    t.is(sentence.exec(stderr)?.[0], sentence.exec(await readPage(page))?.[0]);
    const violations = await observe(page, 'store-away');

    await redis.restart();
    await eventually('it is over', async () => {
      await worker.decide('customer=ada');
      return (await served.plane.fetch('/activity')).body.deeds.some(({ what }: { what: string }) =>
        /^Store unreachable: over, after /.test(what),
      );
    });
    await page.getByRole('link', { name: 'Fleet', exact: true }).click();
    const begin = page.getByRole('link', { name: /Store unreachable: all requests are allowed/ });
    await begin.click();
    await shows(page, /What happened at \d\d:\d\d .*Store unreachable: all requests are allowed/);
    t.notRegex(await page.locator('.verdict').innerText(), /not enforced/);
    t.regex(page.url(), /#\/fleet\?at=\d{4}-\d\d-\d\dT\d\d%3A\d\dZ$/);
    violations.push(...(await observe(page, 'minute')));
    t.deepEqual(violations, []);
    t.deepEqual(complaints, []);
  },
);
