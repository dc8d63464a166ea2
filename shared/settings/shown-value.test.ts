import test from 'ava';
import { hasCredentials, maskAddress, maskArguments } from './shown-value.ts';

const masked: [string, string][] = [
  ['localhost:6379', 'localhost:6379'],
  ['redis-1:6379, [::1]:6379', 'redis-1:6379,[::1]:6379'],
  ['/var/run/redis.sock', '/var/run/redis.sock'],
  ['dns:///xds.example:18000', 'dns:///xds.example:18000'],
  ['xds.example', 'xds.example'],
  ['redis://localhost:6379', 'redis://localhost:6379'],
  ['redis://me:secret@localhost:6379/1', 'redis://*****@localhost:6379/1'],
  ['redis://:secret@localhost:6379', 'redis://*****@localhost:6379'],
  ['redis://me:se@c,r/et@localhost:6379', '*****'],
  ['redis://me:se@55:12@localhost:6379', '*****'],
  [' REDIS://me:secret@localhost:6379 ', 'REDIS://*****@localhost:6379'],
  ['me:secret@localhost:6379', '*****@localhost:6379'],
  ['redis://a:x@h:1,redis://b:y@i:2', 'redis://*****@h:1,redis://*****@i:2'],
  ['redis://a:12,b:1@h:5', '*****'],
  ['mymaster,sentinel-1:26379', 'mymaster,sentinel-1:26379'],
  ['mymaster,redis://a:x@h:1', '*****'],
  ['redis://h:1?password=x&db=2&username=u', 'redis://h:1?*****'],
  ['https://h:1/T0KEN/hook', 'https://h:1/*****'],
  ['https://git.example/r?private_token=x#x', 'https://git.example/*****'],
  ['redis://me:sec\nret@h:1', '*****'],
  ['redis://me:secret @h:1', '*****'],
  ['cache.example:6380,password=S,ssl=True', 'cache.example:6380,*****'],
  ['cache.example:6380, password = a,b:12 ', 'cache.example:6380,*****'],
  ['redis%3A%2F%2Fme%3Asecret%40h%3A1', '*****'],
  ['secret', '*****'],
  ['host:6379:secret', '*****'],
  ['redis://:secret', '*****'],
];
test('of an address what was understood is shown, host and port', (t) => {
  for (const [address, shown] of masked) t.is(maskAddress(address), shown, address);
});

test('an argument with credentials is not repeated by an error about it', (t) => {
  const args = ['status', '--admin-rul=http://u:S@h:1', 'h:1,password=S', 'git:HEAD@{1}', 'a@b.c'];
  t.is(
    maskArguments(`unknown: ${args.join(' ')}`, args),
    'unknown: status --admin-rul=http://*****@h:1 h:1,***** git:HEAD@{1} a@b.c',
  );
  t.true(hasCredentials('h%253A1%252Cpassword%253DS'));
});
