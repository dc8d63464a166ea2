import test from 'ava';
import { testLines } from '../../test/support/reviewed-lines.ts';
import { hasCredentials, maskAddress, maskArguments } from './shown-value.ts';

testLines(test, new URL('shown-value.txt', import.meta.url), (given) =>
  maskAddress(JSON.parse(given)),
);

test('an argument with credentials is not repeated by an error about it', (t) => {
  const args = ['status', '--admin-rul=http://u:S@h:1', 'h:1,password=S', 'git:HEAD@{1}', 'a@b.c'];
  t.is(
    maskArguments(`unknown: ${args.join(' ')}`, args),
    'unknown: status --admin-rul=http://*****@h:1 h:1,***** git:HEAD@{1} a@b.c',
  );
  t.true(hasCredentials('h%253A1%252Cpassword%253DS'));
});
