// The region for signing tokens, if no setting names one: found as AWS's own programs do, in the shared config file or
// from the machine. The libraries are only loaded when this is used.
import { AppError, errorText } from '../../../shared/errors.ts';
import { loadOptional } from './cloud-iam-token.ts';

/** Time limit of each of the two requests to the machine's metadata service, which answers at once if it exists. */
const metadataTimeoutMs = 1_000;
const longestRegion = 64;

/** Rejects when no region is found; the result is cached. */
export function createRegionReader(region: string): () => Promise<string> {
  let found = region;
  let finding: Promise<string> | undefined;
  return async () => {
    if (found !== '') return found;
    finding ??= findRegion().finally(() => {
      finding = undefined;
    });
    found = await finding;
    return found;
  };
}

async function findRegion(): Promise<string> {
  const { loadConfig, NODE_REGION_CONFIG_OPTIONS, NODE_REGION_CONFIG_FILE_OPTIONS } =
    await loadOptional(() => import('@smithy/core/config'));
  const reasons: string[] = [];
  for (const find of [
    loadConfig(NODE_REGION_CONFIG_OPTIONS, NODE_REGION_CONFIG_FILE_OPTIONS),
    askMachine,
  ]) {
    try {
      return checkRegion(await find());
    } catch (error) {
      reasons.push(errorText(error));
    }
  }
  throw new AppError(
    'store',
    `no region to sign a token for: not in KVSTORE_CLOUDIAM_REGION, AWS_REGION, AWS_DEFAULT_REGION, the shared config file (${reasons[0]}) or the instance metadata (${reasons[1]})`,
  );
}

async function askMachine(): Promise<string> {
  const { loadConfig } = await loadOptional(() => import('@smithy/core/config'));
  const readDisabled = loadConfig<string>({
    environmentVariableSelector: (environment) => environment['AWS_EC2_METADATA_DISABLED'],
    configFileSelector: () => undefined,
    default: '',
  });
  if ((await readDisabled()).toLowerCase() === 'true') {
    throw new Error('AWS_EC2_METADATA_DISABLED is true');
  }
  const { getInstanceMetadataEndpoint, httpRequest } = await loadOptional(
    () => import('@smithy/credential-provider-imds'),
  );
  const { protocol, hostname, port } = await getInstanceMetadataEndpoint();
  const ask = async (method: string, path: string, headers: Record<string, string>) => {
    const address = { protocol, hostname, port, method, path, headers };
    // The library's own timeout is for silence, this one for the complete answer.
    const signal = AbortSignal.timeout(metadataTimeoutMs);
    return (await httpRequest({ ...address, timeout: metadataTimeoutMs, signal })).toString();
  };
  const ttl = { 'x-aws-ec2-metadata-token-ttl-seconds': '60' };
  const token = await ask('PUT', '/latest/api/token', ttl);
  const headers = { 'x-aws-ec2-metadata-token': token };
  return ask('GET', '/latest/meta-data/placement/region', headers);
}

function checkRegion(text: string): string {
  const region = text.trim();
  if (region.length > longestRegion || !/^[a-z0-9-]+$/i.test(region)) {
    throw new Error('the answer is not the name of a region');
  }
  return region;
}
