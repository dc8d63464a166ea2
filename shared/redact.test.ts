import test from 'ava';
import { redact } from './redact.ts';

const secret = `open sesame, "please" 100%`;

for (const [what, text, redacted] of [
  ['quoted', `who is '${secret}'?`, `who is '*****'?`],
  ['twice', `${secret} and ${secret} again`, '***** and ***** again'],
  ['cut', `AUTH with 'open ses'`, `AUTH with '*****'`],
  ['cut by an ellipsis', `AUTH with 'open ses...' is unknown`, `AUTH with '*****' is unknown`],
  ['written otherwise from some place on', 'no open sesame,+please+100%25 here', 'no ***** here'],
  ['as all there is', secret, '*****'],
  ['in an address', `https://me:${secret}@host/ failed`, 'https://me:*****@host/ failed'],
] as const) {
  test(`a secret that is ${what} is redacted`, (t) => t.is(redact(text, [secret]), redacted));
}

test('a text without a secret stays as it is', (t) => {
  t.is(redact('open the door', [secret]), 'open the door');
  t.is(redact('open the door', ['']), 'open the door');
  t.is(redact('open the door', []), 'open the door');
});

test('a secret in two forms is redacted in both, and nothing else is', (t) => {
  const forms = ['s3cret/pass', 's3cret%2Fpass'];
  t.is(redact('(s3cret%2Fpass) or (s3cret/pass)', forms), '(*****) or (*****)');
});

test('each of several secrets is redacted, short ones too', (t) => {
  t.is(redact('a key and a lock', ['key', 'lock']), 'a ***** and a *****');
});
