import test from 'ava';
import { maskCredentials } from './shown-value.ts';

const masked: [string, string][] = [
  ['localhost:6379', 'localhost:6379'],
  ['/var/run/redis.sock', '/var/run/redis.sock'],
  ['redis://localhost:6379', 'redis://localhost:6379'],
  ['redis://me:secret@localhost:6379/1', 'redis://*****@localhost:6379/1'],
  ['redis://:secret@localhost:6379', 'redis://*****@localhost:6379'],
  ['redis://me:se@c,r/et@localhost:6379', 'redis://*****@localhost:6379'],
  ['REDIS://me:secret@localhost:6379', 'REDIS://*****@localhost:6379'],
  ['me:secret@localhost:6379', '*****@localhost:6379'],
  ['redis://a:x@h:1,redis://b:y@i:2', 'redis://*****@h:1,redis://*****@i:2'],
  ['mymaster,redis://a:x@h:1', 'mymaster,redis://*****@h:1'],
  ['redis://h:1?password=x&db=2&username=u', 'redis://h:1?password=*****&db=2&username=*****'],
  ['https://h/r?ref=x&private_token=x', 'https://h/r?ref=x&private_token=*****'],
  ['redis://me:sec\nret@h:1', 'redis://*****@h:1'],
];
for (const [address, shown] of masked) {
  test(`${JSON.stringify(address)} is shown as ${JSON.stringify(shown)}`, (t) => {
    t.is(maskCredentials(address), shown);
  });
}
