// How gateways deploy a rate limit service, as recorded in test/fixtures/gateway-deployments.yaml.
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

export interface GatewayDeployment {
  readonly gateway: string;
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly mounts: Readonly<Record<string, 'certificates' | 'rules' | 'metrics mapping'>>;
}

export const gatewayDeployments: readonly GatewayDeployment[] = parse(
  readFileSync(new URL('../fixtures/gateway-deployments.yaml', import.meta.url), 'utf8'),
  { merge: true },
);
