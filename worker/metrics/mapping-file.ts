// Reads a mapping from a file in the format of statsd-exporter (behaviour: pull-mapping), and reports all problems at
// once, each with its position.
import { AppError, errorText } from '../../shared/errors.ts';
import type { Log } from '../../shared/log.ts';
import { isError, type Problem } from '../../shared/rules/problem/problem.ts';
import { formatProblems, logProblems } from '../../shared/rules/problem/problem-text.ts';
import { MapReader } from '../../shared/rules/yaml/map-reader.ts';
import { parseYamlTree } from '../../shared/rules/yaml/yaml-tree.ts';
import { readSmallFile } from '../../shared/small-file.ts';
import { toExcerpt } from '../../shared/text-excerpt.ts';
import { observerKeys, readDefaultObserver, readObserver } from './mapping-observer.ts';
import { defaultHelp, type Mapping, type MappingRule } from './metric-mapping.ts';
import { compilePattern, type Pattern } from './regular-expression.ts';

export interface ParsedMapping {
  /** Undefined when `problems` has an error. */
  readonly mapping: Mapping | undefined;
  readonly problems: readonly Problem[];
}

/** Far above the mapping of any deployment. */
const maxBytes = 4 * 1024 * 1024;

/**
 * Undefined when the file does not exist, which is logged, as are warnings; errors reject with AppError `cannot_start`.
 * `setting` is the name by which the path was given.
 */
export async function readMappingFile(
  path: string,
  setting: string,
  log: Log,
): Promise<Mapping | undefined> {
  let text: string;
  try {
    text = await readSmallFile(path, maxBytes);
  } catch (error) {
    // Deployments may configure a path but mount a file only sometimes.
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') {
      log.warning(`${setting}: there is no file ${path}; the default mapping is used`);
      return undefined;
    }
    const message = `the mapping file ${path} cannot be read (${errorText(error)}); set ${setting} to a file that this process may read`;
    throw new AppError('cannot_start', message, { cause: error });
  }
  const { mapping, problems } = parseMapping(text, path);
  if (mapping === undefined) {
    const errors = problems.filter(isError);
    const message = `the mapping file has ${errors.length} problems; repair them, or unset ${setting} for the default mapping`;
    throw new AppError('cannot_start', `${formatProblems(errors)}\n${message}`);
  }
  logProblems(log.warning, problems, setting);
  return mapping;
}

/** `file` is the name of the text for its author; it is part of each problem. */
export function parseMapping(text: string, file: string): ParsedMapping {
  const { root, reporter } = parseYamlTree(text, file);
  let mapping: Mapping | undefined;
  if (root?.kind === 'map') mapping = readMapping(new MapReader(root, '', reporter));
  else if (root !== undefined && root.kind !== 'gap') {
    const hint = "begin with 'mappings:' and a list";
    reporter.error('document-type', root.offset, '', 'the document is not a mapping', hint);
  }
  return {
    mapping: reporter.hasErrors ? undefined : mapping,
    problems: reporter.toProblems(),
  };
}

const code = 'metric-mapping';

const defaultKeys = ['match_type', 'ttl', 'glob_disable_ordering', ...observerKeys];
const ruleKeys = [
  'match',
  'match_type',
  'match_metric_type',
  'action',
  'name',
  'labels',
  'honor_labels',
  'scale',
  'ttl',
  'help',
  ...observerKeys,
];

interface Defaults {
  readonly matchType: 'glob' | 'regex';
  readonly ttlMs: number;
  readonly fields: MapReader | undefined;
}

function readMapping(root: MapReader): Mapping {
  const fields = root.map('defaults');
  const defaults = {
    matchType: fields?.word('match_type', ['glob', 'regex']) ?? 'glob',
    ttlMs: fields?.duration('ttl') ?? 0,
    fields,
  } as const;
  const mostSpecificGlob = fields?.flag('glob_disable_ordering') ?? false;
  const observer = readDefaultObserver(fields);
  const rules = root.maps('mappings').map((rule) => readRule(rule, defaults));
  fields?.warnOfOthers(defaultKeys);
  root.warnOfOthers(['defaults', 'mappings']);
  return {
    rules: rules.filter((rule) => rule !== undefined),
    mostSpecificGlob,
    labelsLimits: false,
    unmapped: { observer, ttlMs: defaults.ttlMs },
  };
}

function readRule(fields: MapReader, defaults: Defaults): MappingRule | undefined {
  const match = readMatch(fields, defaults);
  const action = fields.word('action', ['map', 'drop']) ?? 'map';
  const name = fields.text('name') ?? '';
  if (name === '' && action === 'map') fields.error(code, 'name', "the metric's name is missing");
  else if (!/^(?:[A-Za-z_:$][\w:${}]*)?$/.test(name)) {
    const hint = 'letters, digits and _ make a name, and $1 for what the first * or group matched';
    fields.error(code, 'name', `'${toExcerpt(name)}' is not the name of a metric`, hint);
  }
  const labels = fields.texts('labels');
  for (const [label] of labels) {
    if (!/^[A-Za-z_]\w*$/.test(label)) {
      fields.error(code, 'labels', `'${toExcerpt(label)}' is not the name of a label`);
    }
  }
  const kind = fields.word('match_metric_type', ['counter', 'gauge', 'observer', 'timer']);
  const rule = {
    action,
    metricKind: kind === 'timer' ? 'observer' : kind,
    name,
    labels,
    honorLabels: fields.flag('honor_labels') ?? false,
    observer: readObserver(fields, defaults.fields),
    scale: fields.number('scale') ?? 1,
    ttlMs: fields.duration('ttl') || defaults.ttlMs,
    help: fields.text('help') || defaultHelp,
  } as const;
  fields.warnOfOthers(ruleKeys);
  return match === undefined || fields.reporter.hasErrors ? undefined : { match, ...rule };
}

function readMatch(fields: MapReader, defaults: Defaults): readonly string[] | Pattern | undefined {
  const text = fields.text('match') ?? '';
  const type = fields.word('match_type', ['glob', 'regex']) ?? defaults.matchType;
  if (text === '') {
    fields.error(code, 'match', 'the pattern to match is missing');
    return undefined;
  }
  if (type === 'regex') {
    const compiled = compilePattern(text);
    if (compiled.ok) return compiled.pattern;
    fields.error(code, 'match', `not a regular expression (${toExcerpt(compiled.reason, 200)})`);
    return undefined;
  }
  const parts = text.split('.');
  if (parts.every((part) => part === '*' || /^[\w-]+$/.test(part))) return parts;
  const hint = 'each part between dots is * or letters, digits, _ and -; or set match_type: regex';
  fields.error(code, 'match', `'${toExcerpt(text)}' is not a pattern of parts`, hint);
  return undefined;
}
