// `/effects`: predicts the effect of a change of a domain: its problems, the changes for requests, and the values that
// would be refused.
import Type from 'typebox';
import { runInSlices } from '../../../../shared/in-slices.ts';
import { type Fields, HttpError, op } from '../../../../shared/router/index.ts';
import { orNull } from '../../api-shape.ts';
import type { BuiltSnapshots } from '../../snapshot/build.ts';
import { AdminController, allowRemoval } from '../admin-controller.ts';
import { judgeChange, toFileText } from '../change.ts';
import { type FoundChanges, findChanges } from '../diff-job.ts';
import { findDomainFiles, namesTag, toTag } from '../domain-file.ts';
import { effectJson, findEffect } from '../effect-json.ts';
import type { Examination } from '../examination.ts';
import { toLongAnswer } from '../long-answer.ts';
import { patching } from '../patch-text.ts';
import { problemJson } from '../problem-json.ts';
import { revisionJson, toRevisionJson } from '../revision-json.ts';
import { ruleChangeJson } from '../rule-change-json.ts';
import { readTop, topJson, toTopPath } from '../top.ts';

const plannedChangeJson = Type.Object(
  {
    revision: revisionJson,
    etag: Type.String({ description: 'Of the domain in that revision, the newest' }),
    isStale: Type.Boolean({ description: 'The domain is not what `etag` of the request names' }),
    path: Type.String({ description: 'Of the file, from the root of the repository' }),
    valid: Type.Boolean({ description: 'Whether it can be written' }),
    problems: Type.Array(problemJson, {
      description: 'Of the changed file, and why it is refused',
    }),
    changes: Type.Array(ruleChangeJson, { description: 'From what is in force' }),
    patch: Type.String({ description: "As `git apply` takes it; '' where nothing changes" }),
    effect: orNull(effectJson),
  },
  { title: 'PlannedChange' },
);
export type PlannedChangeJson = Type.Static<typeof plannedChangeJson>;

export class Default extends AdminController {
  static readonly POST = op({
    summary: 'What a change of a domain would do, without making it',
    description:
      'What the workers recorded is decided again by their own code, where `--recordings` names it; else the values that are limited most are, as an estimate. At most the newest 16 MiB of recordings are read, for at most 4 seconds.',
    body: Type.Object({
      domain: Type.String({ minLength: 1, maxLength: 1024 }),
      yaml: Type.String({ description: 'All rules of the domain' }),
      etag: Type.Optional(
        Type.String({ maxLength: 200, description: 'Of the rules that the change was made from' }),
      ),
      allowRemoval,
    }),
    returns: { 200: plannedChangeJson },
    failures: { 409: undefined, 503: undefined },
  });

  async POST({ domain, yaml: given, etag, allowRemoval = false }: Fields<typeof Default.POST>) {
    const yaml = toFileText(given);
    const { api } = this;
    const newest = await this.readNewest();
    const { documents: inForce, ruleSet } = api.snapshots;
    const { documents } = await api.examine(newest);
    const files = findDomainFiles(newest, documents, inForce, domain);
    const [file, ...others] = files;
    if (file === undefined) throw new HttpError(404, { detail: `there is no domain ${domain}` });
    if (others.length > 0) {
      const paths = files.map(({ path }) => path).join(', ');
      throw new HttpError(409, { detail: `the domain is in several files (${paths})` });
    }
    const { document } = await api.reading.readDocument(yaml, file.path);
    if (document !== undefined && document.domain !== domain) {
      const detail = `the rules are for domain ${document.domain}, not ${domain}`;
      throw new HttpError(400, { detail });
    }
    const { examined, refused } = await judgeChange(newest, api, {
      plan: () => ({ put: [{ path: file.path, text: yaml }], delete: [] }),
      toleratesOldErrors: true,
      allowsRemoval: allowRemoval,
      author: { name: api.callerOf(this.request), email: '' },
      message: '',
    });
    const own = examined.problems.filter((problem) => problem.file === file.path);
    const tag = await toTag(files);
    const changes =
      examined.ruleSet === undefined || ruleSet === undefined
        ? undefined
        : await findChanges(
            api.thread,
            {
              before: toCompared(ruleSet, inForce, domain),
              after: toCompared(examined.ruleSet, examined.documents, domain),
            },
            { nowMs: api.clock.wallMs(), signal: this.request.signal },
          );
    const path = `${api.repositoryFolder}${file.path}`;
    return toLongAnswer({
      revision: toRevisionJson(newest),
      etag: tag,
      isStale: etag !== undefined && !namesTag(etag, tag),
      path,
      valid: refused.length === 0,
      problems: this.toProblems([...new Set([...refused, ...own])]),
      changes: changes ?? [],
      patch: await runInSlices(patching(path, file.text, yaml)),
      effect: changes === undefined ? null : await this.findEffect(domain, examined, changes),
    });
  }

  private findEffect(domain: string, examined: Examination, changes: FoundChanges) {
    const { api } = this;
    const { recordings, thread, clock } = api;
    const wanted = { domain, limit: 200 };
    return findEffect({
      ...{ domain, changes, recordings, thread, clock },
      before: ofDomain(api.snapshots.documents, domain),
      after: ofDomain(examined.documents, domain),
      readTop: () => readTop(api, wanted, this.askPeers(toTopPath(wanted), topJson, undefined)),
      signal: this.request.signal,
    });
  }
}

function toCompared(
  ruleSet: BuiltSnapshots['ruleSet'],
  documents: BuiltSnapshots['documents'],
  domain: string,
) {
  return { ruleSet, documents: ofDomain(documents, domain), domains: [domain], groups: [] };
}

function ofDomain(documents: Examination['documents'], domain: string): Examination['documents'] {
  return documents.filter((document) => document.domain === domain);
}
