import test from 'ava';
import { toSourceUrl } from './source-url.ts';

const template = 'https://git.example/rules/blob/{revision}/conf/{file}#L{line}';

test("the template's placeholders are replaced by the encoded parts of a position", (t) => {
  const position = { file: 'a b/c#d.yaml', line: 12, revision: '0123abc' };
  t.is(
    toSourceUrl(template, position),
    'https://git.example/rules/blob/0123abc/conf/a%20b/c%23d.yaml#L12',
  );
  t.is(
    toSourceUrl('https://g/{file}?l={line}', { ...position, file: '{line}' }),
    'https://g/%7Bline%7D?l=12',
  );
});

test('without a line, the address is that of the file', (t) => {
  const position = { file: 'd.yaml', line: null, revision: '0123abc' };
  t.is(toSourceUrl(template, position), 'https://git.example/rules/blob/0123abc/conf/d.yaml');
});
