// Explains why npm failed. The caller prints npm's own lines below it.

const causes = [
  {
    pattern: /ENOSPC|EDQUOT|no space left/i,
    text: 'the disk is full',
    hint: 'Free some space (about 400 MB are needed) and start again.',
  },
  {
    pattern:
      /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT|ENOTCACHED/,
    text: 'the package registry cannot be reached',
    hint: 'Check the network, the proxy (HTTPS_PROXY) and npm\'s "registry" setting, and start again.',
  },
  {
    pattern: /\bE401\b|\bE403\b/,
    text: 'the package registry refuses access',
    hint: 'Check the registry and the credentials in your .npmrc.',
  },
  {
    pattern: /CERT|SELF_SIGNED|UNABLE_TO_VERIFY/,
    text: "the package registry's certificate is not trusted",
    hint: 'Behind a proxy of your own, set NODE_EXTRA_CA_CERTS or npm\'s "cafile" setting.',
  },
  {
    pattern: /EACCES|EPERM|EROFS/,
    text: 'a folder cannot be written',
    hint: 'The user who starts this needs write access to the project folder.',
  },
  {
    pattern: /EUSAGE|in sync/,
    text: 'package.json and package-lock.json do not agree',
    hint: 'Run "npm install" once to bring them together.',
  },
  {
    pattern: /EINTEGRITY/,
    text: 'a downloaded package is not the one that package-lock.json names',
    hint: 'Run "npm cache verify" and start again; if it stays, the registry serves something else.',
  },
  {
    pattern: /ETARGET|E404/,
    text: 'the package registry does not have a package that is needed',
    hint: 'If it is a mirror, it may not be up to date yet.',
  },
];

/** @returns {{ text: string, hint: string }} */
export function explainNpmFailure(output) {
  const known = causes.find((cause) => cause.pattern.test(output));
  return known ?? { text: 'npm failed', hint: 'The lines of npm are above.' };
}
