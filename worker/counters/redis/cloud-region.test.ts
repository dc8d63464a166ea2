import { writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { listenFor } from '../../../test/support/listen.ts';
import { createTemporaryFolder } from '../../../test/support/temporary-folder.ts';
import { createRegionReader } from './cloud-region.ts';

const names = [
  'AWS_REGION',
  'AWS_CONFIG_FILE',
  'AWS_SHARED_CREDENTIALS_FILE',
  'AWS_EC2_METADATA_SERVICE_ENDPOINT',
  'AWS_EC2_METADATA_DISABLED',
];

/** A process with this config file, on a machine whose metadata service answers so. */
async function setUp(t: ExecutionContext, config: string, answer?: RequestListener): Promise<void> {
  const folder = createTemporaryFolder(t);
  const before = names.map((name) => [name, process.env[name]] as const);
  t.teardown(() => {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  });
  for (const name of names) delete process.env[name];
  for (const [name, text] of [
    ['AWS_CONFIG_FILE', config],
    ['AWS_SHARED_CREDENTIALS_FILE', ''],
  ] as const) {
    process.env[name] = join(folder, name);
    writeFileSync(join(folder, name), text);
  }
  if (answer === undefined) {
    process.env['AWS_EC2_METADATA_DISABLED'] = 'true';
    return;
  }
  const port = await listenFor(t, createServer(answer));
  process.env['AWS_EC2_METADATA_SERVICE_ENDPOINT'] = `http://127.0.0.1:${port}`;
}

const answerRegion =
  (region: string): RequestListener =>
  ({ method, url, headers }, response) => {
    const isAllowed = headers['x-aws-ec2-metadata-token'] === 'a token';
    if (method === 'PUT' && url === '/latest/api/token') response.end('a token');
    else if (isAllowed && url === '/latest/meta-data/placement/region') response.end(region);
    else response.writeHead(401).end();
  };

test.serial('a configured region is used, and no server is asked', async (t) => {
  await setUp(t, '[default]\nregion = eu-north-1\n');
  t.is(await createRegionReader('eu-west-1')(), 'eu-west-1');
});

test.serial('the region of the shared config file precedes that of the machine', async (t) => {
  await setUp(t, '[default]\nregion = eu-north-1\n', answerRegion('us-east-2'));
  t.is(await createRegionReader('')(), 'eu-north-1');
});

test.serial('the region of the machine is used when no file has one', async (t) => {
  await setUp(t, '', answerRegion('us-east-2'));
  t.is(await createRegionReader('')(), 'us-east-2');
});

test.serial('without a region every searched location is named', async (t) => {
  await setUp(t, '');
  await t.throwsAsync(createRegionReader('')(), {
    message: /KVSTORE_CLOUDIAM_REGION.*shared config file.*AWS_EC2_METADATA_DISABLED is true/,
  });
});

test.serial('a machine that does not answer is not waited for', async (t) => {
  await setUp(t, '', () => {});
  await t.throwsAsync(createRegionReader('')(), { message: /no region to sign a token for/ });
});

test.serial('an answer that never ends is not waited for', async (t) => {
  await setUp(t, '', (_, response) => {
    const timer = setInterval(() => response.write('a'), 50);
    response.on('close', () => clearInterval(timer));
  });
  await t.throwsAsync(createRegionReader('')(), { message: /no region to sign a token for/ });
});

test.serial('an invalid region name is not used for signing', async (t) => {
  await setUp(t, '', answerRegion('<html>\nnone</html>'));
  await t.throwsAsync(createRegionReader('')(), { message: /not the name of a region/ });
});
