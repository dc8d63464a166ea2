import test from 'ava';

// Plain JavaScript, which has no type declarations.
const progress = new URL('../../compose/install-progress.mjs', import.meta.url).href;

/** Returns the output after 25 updates. */
async function run(terminal: object): Promise<string> {
  let written = '';
  const stream = { ...terminal, write: (text: string) => (written += text) };
  const asked = Promise.withResolvers<void>();
  let count = 0;
  const { startProgress } = await import(progress);
  const stop = startProgress(
    () => {
      count += 1;
      if (count === 25) asked.resolve();
      return `part ${count} of many`;
    },
    stream,
    1,
  );
  await asked.promise;
  stop();
  return written;
}

test('a log receives every tenth line', async (t) => {
  t.is(await run({}), 'ratelane: part 10 of many\nratelane: part 20 of many\n');
});

test('a terminal shows one line, which is rewritten, never too wide, and removed at the end', async (t) => {
  const written = await run({ isTTY: true, columns: 20 });
  t.false(written.includes('\n'));
  const lines = written.split('\r\x1b[K');
  t.is(lines[1], 'ratelane: part 1 of');
  t.is(lines[25], 'ratelane: part 25 o');
  t.is(lines.at(-1), '');
  t.is(lines.length, 27);
});
