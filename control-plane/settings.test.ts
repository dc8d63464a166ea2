import test from 'ava';
import { Command } from 'commander';
import { addFlags, overlayFlags } from './settings/flags.ts';
import { controlPlaneTable } from './settings/table.ts';
import { parseControlPlaneSettings } from './settings.ts';

const directory = { '--config-dir': '/rules', HOME: '/home/ann' };

function problemsOf(environment: Readonly<Record<string, string>>): readonly string[] {
  const result = parseControlPlaneSettings(environment);
  return result.ok ? [] : result.problems;
}

/** The settings that the program reads from a command line. */
function settingsOf(args: readonly string[], environment: Readonly<Record<string, string>> = {}) {
  const command = new Command().exitOverride();
  addFlags(command, controlPlaneTable);
  command.parse(args, { from: 'user' });
  return parseControlPlaneSettings(overlayFlags(controlPlaneTable, environment, command.opts()));
}

test('a directory is all that has to be given', (t) => {
  const result = parseControlPlaneSettings({ ...directory, XDG_STATE_HOME: '/state' });
  t.true(result.ok);
  if (!result.ok) return;
  t.deepEqual(result.warnings, [
    'whoever reaches 0.0.0.0:18000 can read all rules: give --xds-tokens-file/RATELANE_XDS_TOKENS_FILE or --xds-tls-client-ca/RATELANE_XDS_TLS_CLIENT_CA, or a loopback address as --xds-address/RATELANE_XDS_ADDRESS',
  ]);
  t.deepEqual(result.settings, {
    config: { kind: 'directory', directory: '/rules' },
    stateDirectory: '/state/ratelane/127.0.0.1-18001',
    mergeDomains: false,
    allowsRemoval: false,
    rollout: undefined,
    peers: undefined,
    peersTokenFile: undefined,
    webhook: { secret: '', secretFile: undefined },
    sourceUrl: undefined,
    recordings: undefined,
    xds: {
      address: { host: '0.0.0.0', port: 18_000 },
      tls: undefined,
      tokensFile: undefined,
      maxResponseBytes: 4 * 1024 * 1024,
    },
    admin: {
      address: { host: '127.0.0.1', port: 18_001 },
      tls: undefined,
      tokensFile: undefined,
      isLoopback: true,
    },
    notify: {
      url: undefined,
      secretFile: undefined,
      commitStatus: undefined,
      publicUrl: undefined,
    },
    log: { level: 'info', format: 'text' },
  });
});

test('a flag wins over its variable, and is named in messages', (t) => {
  const git = ['--git', 'https://git.example/r', '--git-path', 'rules', '--git-poll', '1s'];
  const result = settingsOf(git, { RATELANE_GIT: 'https://other.example/r' });
  t.true(result.ok);
  if (!result.ok || result.settings.config.kind !== 'git') return t.fail();
  t.like(result.settings.config, { url: 'https://git.example/r', path: 'rules', pollMs: 1_000 });
  const wrong = settingsOf([...git, '--git-poll', '1'], { RATELANE_GIT_POLL: '30s' });
  t.deepEqual(wrong.ok ? [] : wrong.problems, [
    '--git-poll="1": the unit is missing (one of ns, us, ms, s, m, h); write a duration from 100ms to 480h such as 30s',
  ]);
});

test('a switch may be given without a value', (t) => {
  for (const [args, expected] of [
    [[], false],
    [['--merge-domains'], true],
    [['--merge-domains', 'false'], false],
  ] as const) {
    const result = settingsOf(['--config-dir', '/rules', ...args]);
    t.is(result.ok && result.settings.mergeDomains, expected);
  }
});

test('everything that is wrong is told at once', (t) => {
  t.deepEqual(
    problemsOf({
      RATELANE_XDS_ADDRESS: '18000',
      RATELANE_ADMIN_TLS_KEY: '/key.pem',
      RATELANE_LOG_LEVEL: 'loud',
      '--max-response-bytes': '3',
    }),
    [
      '--max-response-bytes="3": out of range; write a whole number from 1024 to 1073741824 such as 4194304',
      'RATELANE_LOG_LEVEL="loud": unknown value; write one of error, warning, info, debug',
      'no rules are named: give --config-dir/RATELANE_CONFIG_DIR or --git/RATELANE_GIT',
      'RATELANE_XDS_ADDRESS="18000": the port is missing; write host:port such as 0.0.0.0:18000',
      '--admin-tls-cert/RATELANE_ADMIN_TLS_CERT is not set: RATELANE_ADMIN_TLS_KEY="/key.pem" needs it',
    ],
  );
});

for (const address of ['0.0.0.0:1', ':1', '10.0.0.1:1', '[::]:1', 'example.test:1']) {
  test(`the admin address ${address} needs tokens`, (t) => {
    const [problem, ...others] = problemsOf({ ...directory, '--admin-address': address });
    t.deepEqual(others, []);
    t.is(
      problem,
      `--admin-address="${address}" can be reached from elsewhere, and neither --admin-tokens-file/RATELANE_ADMIN_TOKENS_FILE nor --peers-token-file/RATELANE_PEERS_TOKEN_FILE is set: give a file of tokens, or a loopback address`,
    );
    for (const setting of ['--admin-tokens-file', '--peers-token-file']) {
      const given = { ...directory, '--admin-address': address, [setting]: '/tokens' };
      t.deepEqual(problemsOf(given), []);
    }
  });
}

for (const address of ['127.0.0.1:1', '127.9.9.9:1', '[::1]:1', 'localhost:1', 'LOCALHOST:1']) {
  test(`the admin address ${address} needs no tokens`, (t) => {
    t.deepEqual(problemsOf({ ...directory, '--admin-address': address }), []);
  });
}

test('settings that exclude each other are refused', (t) => {
  t.regex(
    problemsOf({ ...directory, RATELANE_GIT: 'https://ann:geheim@git.example/r' }).join(),
    /^--config-dir="\/rules" and RATELANE_GIT="https:\/\/\*\*\*\*\*@git\.example\/\*\*\*\*\*": give one/,
  );
  t.regex(
    problemsOf({ ...directory, '--xds-address': '0.0.0.0:18001' }).join(),
    /have the same port 18001$/,
  );
  const secrets = { RATELANE_WEBHOOK_SECRET: 'geheim', '--webhook-secret-file': '/secret' };
  const problems = problemsOf({ ...directory, ...secrets });
  t.deepEqual(problems, [
    'RATELANE_WEBHOOK_SECRET and --webhook-secret-file="/secret" are both set; remove one of them',
  ]);
});

test('a setting without effect, and a misspelled one, is a warning', (t) => {
  const result = parseControlPlaneSettings({
    ...directory,
    '--git-ref': 'main',
    RATELANE_ADMIN_ADRESS: 'x',
    RATELANE_ADMIN_TOKEN: 'of another command',
    RATELANE_XDS_ADDRESS: 'localhost:18000',
    KVSTORE_URL: 'of the worker',
  });
  t.deepEqual(result.warnings, [
    'RATELANE_ADMIN_ADRESS is not a setting and is ignored: did you mean RATELANE_ADMIN_ADDRESS?',
    '--git-ref="main" has no effect without --git',
  ]);
});

// Proof of SECURITY.md: all that a worker's token may, which the start says with `--rollout`
test('a port that others can reach is told when what it serves, or its tokens, can be read there', (t) => {
  const warningsOf = (environment: Readonly<Record<string, string>>) =>
    parseControlPlaneSettings({ ...directory, ...environment }).warnings;
  const cert = { '--xds-tls-cert': '/cert.pem', '--xds-tls-key': '/key.pem' };
  const clearText = [
    'the tokens of --xds-tokens-file/RATELANE_XDS_TOKENS_FILE travel in clear text to 0.0.0.0:18000: give --xds-tls-cert/RATELANE_XDS_TLS_CERT and --xds-tls-key/RATELANE_XDS_TLS_KEY',
  ];
  t.deepEqual(warningsOf({ '--xds-tokens-file': '/tokens' }), clearText);
  t.deepEqual(warningsOf({ '--xds-tokens-file': '/tokens', ...cert }), []);
  t.regex(warningsOf(cert).join(), /^whoever reaches/, 'TLS lets everybody in');
  t.deepEqual(warningsOf({ '--xds-tls-client-ca': '/ca.pem', ...cert }), []);
  const rollout = { '--rollout': 'canary=10%,hold=60s' };
  t.deepEqual(warningsOf(rollout), [
    'whoever reaches 0.0.0.0:18000 can read all rules, and bear witness for or against a revision with as many workers as it opens connections: give --xds-tokens-file/RATELANE_XDS_TOKENS_FILE or --xds-tls-client-ca/RATELANE_XDS_TLS_CLIENT_CA, or a loopback address as --xds-address/RATELANE_XDS_ADDRESS',
  ]);
  t.deepEqual(warningsOf({ ...rollout, '--xds-tokens-file': '/tokens', ...cert }), []);
  t.deepEqual(warningsOf({ ...rollout, '--xds-tls-client-ca': '/ca.pem', ...cert }), []);
  t.deepEqual(warningsOf({ ...rollout, '--xds-address': '[::1]:18000' }), []);
  t.deepEqual(warningsOf({ '--xds-address': '[::1]:18000' }), []);
  const admin = { '--xds-address': '127.0.0.1:18000', '--admin-tokens-file': '/tokens' };
  t.deepEqual(warningsOf(admin), []);
  t.deepEqual(warningsOf({ ...admin, '--admin-address': '10.0.0.1:18001' }), [
    'the tokens of --admin-tokens-file/RATELANE_ADMIN_TOKENS_FILE travel in clear text to 10.0.0.1:18001: give --admin-tls-cert/RATELANE_ADMIN_TLS_CERT and --admin-tls-key/RATELANE_ADMIN_TLS_KEY',
  ]);
});

test('peers are asked with the certificates and over the protocol of the admin port', (t) => {
  const tls = { '--admin-tls-cert': '/admin.pem', '--admin-tls-key': '/admin.key' };
  const own = { '--peers-cert': '/own.pem', '--peers-key': '/own.key' };
  const ca = { '--peers-ca': '/ca.pem' };
  const peersOf = (environment: Readonly<Record<string, string>>) => {
    const result = parseControlPlaneSettings({
      ...directory,
      '--peers': 'dns:b:1,https://c:1',
      ...environment,
    });
    const { dnsProtocol, tls } = (result.ok && result.settings.peers) || {};
    return { dnsProtocol, tls };
  };
  t.deepEqual(peersOf({}), { dnsProtocol: 'http:', tls: undefined });
  t.deepEqual(peersOf(ca), {
    dnsProtocol: 'http:',
    tls: { ca: '/ca.pem', cert: undefined, key: undefined },
  });
  t.deepEqual(peersOf({ ...tls, ...ca }), {
    dnsProtocol: 'https:',
    tls: { ca: '/ca.pem', cert: '/admin.pem', key: '/admin.key' },
  });
  t.deepEqual(peersOf({ ...tls, ...own }), {
    dnsProtocol: 'https:',
    tls: { ca: undefined, cert: '/own.pem', key: '/own.key' },
  });
  for (const [half, missing] of [
    ['--peers-cert', '--peers-key/RATELANE_PEERS_KEY'],
    ['--peers-key', '--peers-cert/RATELANE_PEERS_CERT'],
  ] as const) {
    t.deepEqual(problemsOf({ ...directory, ...tls, '--peers': 'dns:b:1', [half]: '/x' }), [
      `${missing} is not set: ${half}="/x" needs it`,
    ]);
  }
});

test('certificates for peers that are asked over http are told to have no effect', (t) => {
  const result = parseControlPlaneSettings({
    ...directory,
    RATELANE_XDS_ADDRESS: 'localhost:18000',
    '--peers': 'dns:b:1,http://c:1',
    '--peers-ca': '/ca.pem',
  });
  t.deepEqual(result.warnings, ['--peers-ca="/ca.pem" has no effect: no peer is asked over https']);
});

test('tokens that go to peers in clear text over a network are told', (t) => {
  const warningsOf = (peers: string, environment: Readonly<Record<string, string>>) =>
    parseControlPlaneSettings({
      ...directory,
      RATELANE_XDS_ADDRESS: 'localhost:18000',
      '--peers': peers,
      ...environment,
    }).warnings;
  const tls = { '--admin-tls-cert': '/admin.pem', '--admin-tls-key': '/admin.key' };
  const shared = { '--peers-token-file': '/token' };
  const open =
    'http://b:1/base,dns:c:1,https://d:1,http://127.0.0.1:1,http://[::1]:1,dns:localhost:1';
  const clearText = (peers: string) => [
    `tokens travel in clear text to the peers ${peers} of --peers/RATELANE_PEERS: write https://; those of a name (dns:) are asked over https with --admin-tls-cert/RATELANE_ADMIN_TLS_CERT and --admin-tls-key/RATELANE_ADMIN_TLS_KEY`,
  ];
  for (const tokens of [shared, { '--admin-tokens-file': '/tokens' }]) {
    t.deepEqual(warningsOf(open, tokens), clearText('http://b:1, dns:c:1'));
    t.deepEqual(warningsOf(open, { ...tokens, ...tls }), clearText('http://b:1'));
  }
  t.deepEqual(warningsOf(open, {}), [], 'there are no tokens');
  t.deepEqual(warningsOf('https://b:1,http://localhost:1', shared), []);
  t.deepEqual(warningsOf('dns:b:1', { ...shared, ...tls }), []);
  t.deepEqual(warningsOf('https://b:1', { ...shared, '--admin-address': '10.0.0.1:18001' }), [
    'the tokens of --peers-token-file/RATELANE_PEERS_TOKEN_FILE travel in clear text to 10.0.0.1:18001: give --admin-tls-cert/RATELANE_ADMIN_TLS_CERT and --admin-tls-key/RATELANE_ADMIN_TLS_KEY',
  ]);
});

test('where people read the files is an address with the place of a file, without a password', (t) => {
  const settings = (template: string) => ({ ...directory, '--source-url': template });
  const problemOf = (template: string) => problemsOf(settings(template))[0];
  const good = parseControlPlaneSettings(
    settings('https://git.example/r/blob/main/{file}#L{line}'),
  );
  t.is(good.ok && good.settings.sourceUrl, 'https://git.example/r/blob/main/{file}#L{line}');
  const name = '--source-url/RATELANE_SOURCE_URL';
  t.is(
    problemOf('https://g/{path}'),
    `${name}: {path} is not known; there are {file}, {line} and {revision}`,
  );
  t.is(problemOf('https://g/{line}'), `${name}: it has no {file}`);
  t.regex(problemOf('git.example/{file}') ?? '', /: it is no address; write such as https:/);
  t.regex(problemOf('javascript:{file}') ?? '', /: it has to begin with https:/);
  const secret = parseControlPlaneSettings(settings('https://ann:hunter2@g/{revision}/{file}'));
  t.false(secret.ok);
  t.notRegex(JSON.stringify(secret), /hunter2/);
  const commit = parseControlPlaneSettings(settings('https://g/{revision}/{file}'));
  t.true(
    commit.warnings.some((text) => /names \{revision\}, but revisions of a directory/.test(text)),
  );
});
