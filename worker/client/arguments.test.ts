import test from 'ava';
import { type ClientArguments, parseClientArguments } from './arguments.ts';

function parse(...args: string[]): ClientArguments {
  const parsed = parseClientArguments(args);
  if (parsed.kind !== 'call') {
    throw new Error(`${parsed.kind}: ${JSON.stringify(parsed)}`);
  }
  return parsed.arguments;
}

function refusal(...args: string[]): string {
  const parsed = parseClientArguments(args);
  return parsed.kind === 'wrong' ? parsed.message : `accepted as ${parsed.kind}`;
}

test('without flags the worker on this machine is asked for one hit', (t) => {
  t.deepEqual(parse(), {
    target: 'localhost:8081',
    domain: '',
    descriptors: [],
    hitsAddend: 1,
    timeoutMs: 5000,
    json: false,
    failOverLimit: false,
    tls: undefined,
    traceProtocol: undefined,
  });
});

test('one dash or two, a value apart or after an equals sign: all the same', (t) => {
  const expected = parse('-domain', 'shop', '-descriptors', 'a=b');
  t.is(expected.domain, 'shop');
  t.deepEqual(parse('--domain', 'shop', '--descriptors', 'a=b'), expected);
  t.deepEqual(parse('-domain=shop', '-descriptors=a=b'), expected);
  t.deepEqual(parse('--domain=shop', '--descriptors=a=b'), expected);
});

test('descriptors come in the order of their flags, entries in the order of their pairs', (t) => {
  t.deepEqual(parse('-descriptors', 'a=1,b=2', '-descriptors', 'c=3').descriptors, [
    [
      { key: 'a', value: '1' },
      { key: 'b', value: '2' },
    ],
    [{ key: 'c', value: '3' }],
  ]);
});

test('keys and values may be empty', (t) => {
  t.deepEqual(parse('-descriptors', 'k=').descriptors, [[{ key: 'k', value: '' }]]);
  t.deepEqual(parse('-descriptors', '=').descriptors, [[{ key: '', value: '' }]]);
});

test('a value that begins with a dash is still a value', (t) => {
  t.is(parse('-domain', '-domain').domain, '-domain');
});

// Proof of differences.md: Values in the client's `-descriptors` may have equals signs
test('a value may have equals signs', (t) => {
  t.deepEqual(parse('-descriptors', 'query=a=1&b==,k=v').descriptors, [
    [
      { key: 'query', value: 'a=1&b==' },
      { key: 'k', value: 'v' },
    ],
  ]);
});

test('a pair without an equals sign is refused in the words people know', (t) => {
  for (const text of ['k1', 'a=b,k1', 'a=b,', '']) {
    t.true(
      refusal('-descriptors', text).startsWith(
        `invalid value ${JSON.stringify(text)} for flag -descriptors: invalid descriptor list\n`,
      ),
      text,
    );
  }
});

test('an unknown flag is named with the one that was meant', (t) => {
  t.is(
    refusal('--descriptor', 'a=b'),
    'flag provided but not defined: -descriptor\ndid you mean -descriptors?',
  );
  t.is(
    refusal('-otlp-protocol', 'http'),
    'flag provided but not defined: -otlp-protocol\ndid you mean -oltp-protocol?',
  );
});

test('a span is sent as the flag of the reference says, in its spelling', (t) => {
  t.is(parse('-oltp-protocol', 'http').traceProtocol, 'http');
  t.is(parse('--oltp-protocol=grpc').traceProtocol, 'grpc');
  t.is(parse('-oltp-protocol=').traceProtocol, undefined);
  t.is(
    refusal('-oltp-protocol', 'udp'),
    'invalid value "udp" for flag -oltp-protocol: Invalid otlptrace client protocol\nexpected http or grpc',
  );
});

test('a flag at the end without its value, and a word without a flag, are refused', (t) => {
  t.is(refusal('-domain'), 'flag needs an argument: -domain');
  t.is(
    refusal('-domain', 'shop', 'a=b'),
    'unexpected argument "a=b": everything is given by flags',
  );
});

test('hits may be 0 to look only, and are bounded as on the wire', (t) => {
  t.is(parse('-hits_addend', '0').hitsAddend, 0);
  t.is(parse('--hits', '4294967295').hitsAddend, 4294967295);
  for (const hits of ['4294967296', '-1', '1.5', 'x', '']) {
    t.regex(refusal('-hits', hits), /^invalid value ".*" for flag -hits_addend: /);
  }
});

test('the deadline is a duration with a unit', (t) => {
  t.is(parse('-timeout', '1500ms').timeoutMs, 1500);
  for (const timeout of ['5', '0s', '-1s', '25h', 'soon']) {
    t.regex(refusal('-timeout', timeout), /^invalid value ".*" for flag -timeout: /);
  }
});

test('switches need no value, and take true or false', (t) => {
  t.true(parse('-json').json);
  t.false(parse('-json=false').json);
  t.is(refusal('-json=maybe'), 'invalid boolean value "maybe" for -json: true or false');
  t.deepEqual(parse('-grpc-use-tls', '-grpc-server-ca-file', 'ca.pem').tls, {
    serverCaFile: 'ca.pem',
    certFile: '',
    keyFile: '',
  });
});

test('TLS files that would have no effect are refused', (t) => {
  t.is(
    refusal('-grpc-use-tls', '-grpc-key-file', 'k.pem'),
    '-grpc-key-file needs -grpc-cert-file as well',
  );
  t.is(
    refusal('-grpc-server-ca-file', 'ca.pem'),
    'TLS files are given; -grpc-use-tls is needed as well',
  );
});

test('help is asked for in the usual ways, wherever it stands', (t) => {
  for (const args of [['-h'], ['--help'], ['-domain', 'a', '-help']]) {
    t.is(parseClientArguments(args).kind, 'help');
  }
});
