// Tests which address the image's health check calls.
import test from 'ava';
import { testLines } from '../../support/reviewed-lines.ts';

interface Target {
  readonly host: string;
  readonly port: string;
  readonly isTls: boolean;
}

const {
  findTargets,
}: {
  findTargets: (
    environment: Readonly<Record<string, string>>,
    words: readonly string[],
  ) => Target[];
} = await import(new URL('../../../compose/package/healthcheck.mjs', import.meta.url).href);

const shown = ({ host, port, isTls }: Target) => `${isTls ? 'https' : 'http'} ${host} ${port}`;

/** Variables, then the command: the address for a worker, and for a control plane. */
testLines(test, new URL('image-health.txt', import.meta.url), (given) => {
  const isVariable = (word: string) => /^[A-Z_]+=/.test(word);
  const words = given.split(' ');
  const variables = words.filter(isVariable).map((word) => word.split(/=(.*)/));
  const command = words.filter((word) => !isVariable(word));
  return findTargets(Object.fromEntries(variables), command).map(shown).join(', ');
});
