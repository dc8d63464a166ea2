// Reads the setting for the address of rules files, which is a template.

const placeholders = ['file', 'line', 'revision'];

/** Why the template cannot be used, without a final full stop; undefined for a good one. */
export function findSourceUrlProblem(template: string): string | undefined {
  const named = [...template.matchAll(/\{([^{}]*)\}/g)].map(([, name = '']) => name);
  const unknown = named.find((name) => !placeholders.includes(name));
  if (unknown !== undefined) {
    // Quotes a name only, not arbitrary text in braces.
    const shown = /^[a-z_]{1,20}$/.test(unknown) ? `{${unknown}}` : 'a placeholder';
    return `${shown} is not known; there are {file}, {line} and {revision}`;
  }
  if (!named.includes('file')) return 'it has no {file}';
  let url: URL;
  try {
    url = new URL(template.replaceAll(/[{}]/g, ''));
  } catch {
    return 'it is no address; write such as https://git.example/team/rules/blob/{revision}/{file}#L{line}';
  }
  if (!['http:', 'https:'].includes(url.protocol))
    return 'it has to begin with https:// or http://';
  if (url.username !== '' || url.password !== '') {
    return 'it has a name or a password, which every user of the console would see';
  }
  return undefined;
}
