// The settings of the control plane, one row each: parsing, flags, --help and the tables of the README are derived from
// them. Each has a flag and a variable, except that secrets have no flag, which the list of processes would show.
import { bool, choice, duration, int, text } from '../../../shared/settings/kind.ts';
import { section } from '../../../shared/settings/setting.ts';

export const controlPlaneTable = {
  config: section('Where configuration lives', {
    directory: text({
      names: ['--config-dir', 'RATELANE_CONFIG_DIR'],
      default: '',
      doc: 'A directory of rules files, watched for changes; either this or --git',
    }),
    stateDirectory: text({
      names: ['--state-dir', 'RATELANE_STATE_DIR'],
      default: '',
      defaultText: 'below $XDG_STATE_HOME or ~/.local/state, by the admin address',
      doc: 'A directory of this control plane alone, where it keeps the last good revision: a restart serves it even while the store cannot be reached',
    }),
    mergeDomains: bool({
      names: ['--merge-domains', 'RATELANE_MERGE_DOMAINS'],
      default: false,
      doc: 'Whether several files may add rules to one domain, like MERGE_DOMAIN_CONFIG of the workers',
    }),
    allowRemoval: bool({
      names: ['--allow-removal', 'RATELANE_ALLOW_REMOVAL'],
      default: false,
      doc: 'Whether a revision that removes most limits is served without an approval',
    }),
    rollout: text({
      names: ['--rollout', 'RATELANE_ROLLOUT'],
      default: '',
      defaultText: 'every worker at once',
      doc: 'In which steps a new revision reaches the workers, such as canary=10%,hold=60s or 5%:30s,25%:60s,100%; on-silence=stop, on-indivisible=proceed and over-limit=10 may follow; off: at once, at every control plane of the record',
    }),
    peers: text({
      names: ['--peers', 'RATELANE_PEERS'],
      default: '',
      defaultText: 'none',
      secret: 'url',
      doc: "The admin addresses of the fleet's other control planes, such as http://b:18001,http://c:18001 or dns:NAME:18001: status, top and counters then cover the workers of all, and one of them leads each rollout; those of a name (dns:) are asked over https where this control plane's own admin API has TLS",
    }),
    peersTokenFile: text({
      names: ['--peers-token-file', 'RATELANE_PEERS_TOKEN_FILE'],
      default: '',
      secret: 'file',
      defaultText: 'none',
      doc: 'A file with one token that the control planes of a fleet share: this one sends it to its peers in a rollout, and accepts it with the scope read; read again when it changes',
    }),
    peersCa: text({
      names: ['--peers-ca', 'RATELANE_PEERS_CA'],
      default: '',
      defaultText: 'those of the system',
      doc: 'CAs in PEM, one of which must have signed the certificate of a peer, in place of those of the system; read again when it changes',
    }),
    peersCert: text({
      names: ['--peers-cert', 'RATELANE_PEERS_CERT'],
      default: '',
      defaultText: 'that of the admin API',
      doc: 'A certificate chain in PEM that is presented to peers that ask for one; read again when it changes',
    }),
    peersKey: text({
      names: ['--peers-key', 'RATELANE_PEERS_KEY'],
      default: '',
      secret: 'file',
      defaultText: 'that of the admin API',
      doc: 'The private key of that certificate',
    }),
  }),
  git: section('Git', {
    url: text({
      names: ['--git', 'RATELANE_GIT'],
      default: '',
      secret: 'url',
      doc: 'A repository that has the rules files: https, ssh, or a path',
    }),
    ref: text({
      names: ['--git-ref', 'RATELANE_GIT_REF'],
      default: '',
      defaultText: "the repository's default branch",
      doc: 'The branch, or the tag, that is followed; a branch is written to as well',
    }),
    path: text({
      names: ['--git-path', 'RATELANE_GIT_PATH'],
      default: '',
      defaultText: 'the root',
      doc: 'The subfolder of the repository that has the rules files',
    }),
    pollMs: duration({
      names: ['--git-poll', 'RATELANE_GIT_POLL'],
      default: 30_000,
      min: 100,
      doc: 'How often to poll for new commits; a webhook is faster',
    }),
    fetchTimeoutMs: duration({
      names: ['--git-fetch-timeout', 'RATELANE_GIT_FETCH_TIMEOUT'],
      default: 300_000,
      min: 1_000,
      doc: 'How long one fetch may take; the first one brings the whole history of the branch, with --git-path only the files of that folder where the host can leave files out',
    }),
    username: text({
      names: ['--git-username', 'RATELANE_GIT_USERNAME'],
      default: '',
      defaultText: 'git',
      doc: 'The user name for the password or token',
    }),
    password: text({
      names: ['RATELANE_GIT_PASSWORD'],
      default: '',
      secret: 'whole',
      doc: 'The password or token for https; for ssh, set GIT_SSH_COMMAND as git knows it',
    }),
    passwordFile: text({
      names: ['--git-password-file', 'RATELANE_GIT_PASSWORD_FILE'],
      default: '',
      secret: 'file',
      doc: 'A file with the password or token for https, read at each use',
    }),
    webhookSecret: text({
      names: ['RATELANE_WEBHOOK_SECRET'],
      default: '',
      secret: 'whole',
      doc: 'The secret that calls of POST /webhooks are signed with; without one they are refused',
    }),
    webhookSecretFile: text({
      names: ['--webhook-secret-file', 'RATELANE_WEBHOOK_SECRET_FILE'],
      default: '',
      secret: 'file',
      doc: 'A file with the secret of the webhook, read at each call',
    }),
  }),
  record: section('The record of rollouts, in an engine', {
    url: text({
      names: ['--record', 'RATELANE_RECORD'],
      default: '',
      defaultText: 'beside the rules',
      secret: 'url',
      doc: 'Where the record of rollouts is kept: redis://HOST:6379, rediss://HOST:6379, etcd:https://HOST:2379 (several with commas) or kubernetes:NAMESPACE/NAME, a ConfigMap',
    }),
    name: text({
      names: ['--record-name', 'RATELANE_RECORD_NAME'],
      default: 'default',
      doc: 'Distinguishes the records of several stores in one engine',
    }),
    password: text({
      names: ['RATELANE_RECORD_PASSWORD'],
      default: '',
      secret: 'whole',
      doc: 'The password of the user in the address of --record',
    }),
    passwordFile: text({
      names: ['--record-password-file', 'RATELANE_RECORD_PASSWORD_FILE'],
      default: '',
      secret: 'file',
      doc: 'A file with that password, read at each use',
    }),
    caFile: text({
      names: ['--record-ca', 'RATELANE_RECORD_CA'],
      default: '',
      defaultText: 'those of the system',
      doc: 'CAs in PEM, one of which must have signed the certificate of the engine; read at each use',
    }),
    certFile: text({
      names: ['--record-cert', 'RATELANE_RECORD_CERT'],
      default: '',
      doc: 'A certificate chain in PEM to present to the engine; read at each use',
    }),
    keyFile: text({
      names: ['--record-key', 'RATELANE_RECORD_KEY'],
      default: '',
      secret: 'file',
      doc: 'The private key of that certificate',
    }),
  }),
  xds: section('xDS, for the workers', {
    address: text({
      names: ['--xds-address', 'RATELANE_XDS_ADDRESS'],
      default: '0.0.0.0:18000',
      doc: 'Where to serve configuration, as host:port',
    }),
    certFile: text({
      names: ['--xds-tls-cert', 'RATELANE_XDS_TLS_CERT'],
      default: '',
      doc: 'A certificate chain in PEM; workers then have to use TLS; read again when it changes',
    }),
    keyFile: text({
      names: ['--xds-tls-key', 'RATELANE_XDS_TLS_KEY'],
      default: '',
      secret: 'file',
      doc: 'The private key of that certificate',
    }),
    clientCaFile: text({
      names: ['--xds-tls-client-ca', 'RATELANE_XDS_TLS_CLIENT_CA'],
      default: '',
      doc: 'CAs, one of which must have signed the certificate that a worker presents',
    }),
    tokensFile: text({
      names: ['--xds-tokens-file', 'RATELANE_XDS_TOKENS_FILE'],
      default: '',
      secret: 'file',
      doc: 'Tokens of the scope xds, one of which a worker must send as "authorization: Bearer ..."',
    }),
    maxResponseBytes: int({
      names: ['--max-response-bytes', 'RATELANE_MAX_RESPONSE_BYTES'],
      default: 4 * 1024 * 1024,
      min: 1024,
      max: 1024 * 1024 * 1024,
      doc: 'A revision that would need a larger response is refused: clients read no more than this',
    }),
  }),
  admin: section('Admin API, for operators and pipelines', {
    address: text({
      names: ['--admin-address', 'RATELANE_ADMIN_ADDRESS'],
      default: '127.0.0.1:18001',
      doc: 'Where to serve the admin API, as host:port; other than loopback needs --admin-tokens-file, or --peers-token-file, and every caller needs a token then',
    }),
    certFile: text({
      names: ['--admin-tls-cert', 'RATELANE_ADMIN_TLS_CERT'],
      default: '',
      doc: 'A certificate chain in PEM; the admin API then speaks HTTPS; read again when it changes',
    }),
    keyFile: text({
      names: ['--admin-tls-key', 'RATELANE_ADMIN_TLS_KEY'],
      default: '',
      secret: 'file',
      doc: 'The private key of that certificate',
    }),
    clientCaFile: text({
      names: ['--admin-tls-client-ca', 'RATELANE_ADMIN_TLS_CLIENT_CA'],
      default: '',
      doc: 'CAs, one of which must have signed the certificate that a client presents',
    }),
    tokensFile: text({
      names: ['--admin-tokens-file', 'RATELANE_ADMIN_TOKENS_FILE'],
      default: '',
      secret: 'file',
      doc: 'Tokens of the scopes read and write, one a line: name, scope, token; read again when it changes; without it callers need no token on a loopback address, and elsewhere only that of --peers-token-file is known',
    }),
    sourceUrl: text({
      names: ['--source-url', 'RATELANE_SOURCE_URL'],
      default: '',
      defaultText: 'none',
      secret: 'url',
      doc: 'Where a file of the rules can be read, such as https://git.example/team/rules/blob/{revision}/{file}#L{line}: the console then links each place in a file to it; {file} is the path in the repository',
    }),
    recordings: text({
      names: ['--recordings', 'RATELANE_RECORDINGS'],
      default: '',
      defaultText: 'none',
      doc: 'A directory that workers record their decisions into (RECORD_DECISIONS), one file or folder for each: what a change of a rule would have done is then computed from these, and not estimated',
    }),
  }),
  notify: section('Notifications of the outcome of revisions', {
    url: text({
      names: ['--notify-url', 'RATELANE_NOTIFY_URL'],
      default: '',
      defaultText: 'none',
      secret: 'whole',
      doc: 'Where to POST, as JSON, that a revision is in force, invalid, held back or taken back; never logged, as it may itself be a secret',
    }),
    secretFile: text({
      names: ['--notify-secret-file', 'RATELANE_NOTIFY_SECRET_FILE'],
      default: '',
      secret: 'file',
      doc: 'A file with the secret that these calls are signed with, read at each call; without one they are not signed',
    }),
    statusUrl: text({
      names: ['--commit-status-url', 'RATELANE_COMMIT_STATUS_URL'],
      default: '',
      defaultText: 'none',
      secret: 'url',
      doc: 'The repository in the API of a Git host like GitHub or Gitea, such as https://api.github.com/repos/acme/limits: each commit that became a revision gets a status there (POST .../statuses/COMMIT)',
    }),
    statusTokenFile: text({
      names: ['--commit-status-token-file', 'RATELANE_COMMIT_STATUS_TOKEN_FILE'],
      default: '',
      secret: 'file',
      doc: 'A file with a token of the Git host that may write commit statuses, read at each call',
    }),
    publicUrl: text({
      names: ['--public-url', 'RATELANE_PUBLIC_URL'],
      default: '',
      defaultText: 'none',
      secret: 'url',
      doc: 'Where users reach the admin API, such as https://limits.example: notifications and statuses then link to the console',
    }),
  }),
  log: section('Log', {
    level: choice({
      names: ['--log-level', 'RATELANE_LOG_LEVEL'],
      words: { error: 'error', warning: 'warning', info: 'info', debug: 'debug' },
      default: 'info',
      anyCase: true,
      doc: 'The lowest level that is logged to standard error',
    }),
    format: choice({
      names: ['--log-format', 'RATELANE_LOG_FORMAT'],
      words: { text: 'text', json: 'json' },
      default: 'text',
      anyCase: true,
      doc: 'The format of the log',
    }),
  }),
};
