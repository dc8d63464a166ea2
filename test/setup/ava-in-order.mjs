// The settings of package.json, and files begin in the order in which the command line names them: ava's own order is that
// of folders. Plain JavaScript, as ava demands.
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';

const { ava } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
const places = new Map(process.argv.map((argument, place) => [resolve(argument), place]));

// biome-ignore lint/style/noDefaultExport: ava reads it
export default {
  ...ava,
  sortTestFiles: (one, other) => (places.get(one) ?? 0) - (places.get(other) ?? 0),
};
