// `/domains`: the rules of one domain as YAML, read and written with entity tags, so that no client overwrites a change
// it has not seen.
import Type from 'typebox';
import { ownTurn, runInSlices } from '../../../../shared/in-slices.ts';
import { type Fields, HttpError, op, optional, part } from '../../../../shared/router/index.ts';
import { orNull } from '../../api-shape.ts';
import type { Revision, StoredFile } from '../../store/revision.ts';
import { AdminController, allowRemoval, rollout } from '../admin-controller.ts';
import { toFileText } from '../change.ts';
import {
  findDomainFiles,
  findUnreadFile,
  freePath,
  listDomainFiles,
  namesTag,
  tagging,
  toFileName,
  toTag,
} from '../domain-file.ts';
import type { Examination } from '../examination.ts';
import { toLongAnswer } from '../long-answer.ts';
import { problemJson, refusedRules } from '../problem-json.ts';
import { findingRuleOwners } from '../rule-owners.ts';
import { findingRuleLines } from '../rule-source.ts';

const domainName = part('domain', Type.String({ minLength: 1, maxLength: 1024 }));
const listed = Type.Object({
  domain: Type.String(),
  files: Type.Array(Type.String()),
  etag: Type.String(),
});
const domainJson = Type.Object(
  {
    domain: Type.String(),
    revision: Type.String(),
    etag: Type.String(),
    files: Type.Array(Type.Object({ path: Type.String(), yaml: Type.String() })),
    problems: Type.Array(problemJson),
    /** Null if no rule was requested, or it does not exist. */
    place: orNull(
      Type.Object(
        {
          path: Type.String({ description: 'Of the file that has the rule' }),
          first: Type.Integer({ description: 'Its first line, with the comments above it' }),
          last: Type.Integer(),
        },
        { title: 'RulePlace' },
      ),
    ),
  },
  { title: 'Domain' },
);
const writtenJson = Type.Object(
  { domain: Type.String(), path: Type.String(), revision: Type.String() },
  { title: 'WrittenDomain' },
);
const yamlBody = Type.Object({
  yaml: Type.String({ description: 'The rules; a body of the type application/yaml is the same' }),
  message: Type.Optional(
    Type.String({ maxLength: 4096, description: 'Why; also as a query parameter' }),
  ),
  allowRemoval,
});
const messageQuery = Type.Object({
  message: Type.Optional(Type.String({ maxLength: 4096 })),
  allowRemoval,
});

const yamlBodies = { 'application/yaml': Type.String({ description: 'The rules' }) };
const deleteHeaders = Type.Object({
  'If-Match': Type.Optional(
    Type.String({ description: 'The entity tag that GET gave, or *; 428 without it' }),
  ),
});
const writeHeaders = Type.Object({
  ...deleteHeaders.properties,
  'If-None-Match': Type.Optional(
    Type.String({ description: '*: only if there is no such domain' }),
  ),
});

export type DomainJson = Type.Static<typeof domainJson>;

export class Default extends AdminController {
  static readonly GET = op({
    summary: 'Read a domain of the newest revision; its entity tag is in the header ETag',
    path: [optional(domainName)],
    query: Type.Object({
      rule: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 4096,
          description: 'Find in `place` where this rule is: its name as `GET /rules` has it',
        }),
      ),
    }),
    returns: { 200: domainJson },
    failures: { 503: undefined },
    shorter: {
      0: {
        summary: 'List the domains of the newest revision',
        returns: { 200: Type.Object({ revision: Type.String(), domains: Type.Array(listed) }) },
      },
    },
  });

  async GET({ rule }: Fields<typeof Default.GET>, domain?: string) {
    const revision = await this.readNewest();
    const { documents, problems } = await this.api.examine(revision);
    const { documents: documentsInForce } = this.api.snapshots;
    if (domain === undefined) {
      const all = listDomainFiles(revision, documents, documentsInForce);
      await ownTurn();
      return toLongAnswer({ revision: revision.id, domains: await runInSlices(listing(all)) });
    }
    const files = findDomainFiles(revision, documents, documentsInForce, domain);
    if (files.length === 0) throw noSuchDomain(domain);
    const paths = new Set(files.map(({ path }) => path));
    const etag = await toTag(files);
    this.response.headers.set('etag', etag);
    return toLongAnswer({
      domain,
      revision: revision.id,
      etag,
      place: rule === undefined ? null : await findPosition(files, documents, rule),
      files: files.map(({ path, text }) => ({ path, yaml: text })),
      problems: this.toProblems(problems.filter(({ file }) => paths.has(file))),
    });
  }

  static readonly POST = op({
    summary: 'Create the domain that the rules name',
    body: yamlBody,
    otherBodies: yamlBodies,
    returns: { 201: writtenJson },
    failures: { 409: undefined, 422: refusedRules, 503: undefined },
  });

  async POST({ yaml: given, message, allowRemoval }: Fields<typeof Default.POST>) {
    const yaml = toFileText(given);
    let domain = '';
    const made = await this.change('create a domain', async () => {
      domain = await this.readDomainName(yaml);
      const { documents: documentsInForce } = this.api.snapshots;
      const path = toFileName(domain);
      return {
        what: `create domain ${domain}`,
        message,
        expectedRevision: undefined,
        toleratesOldErrors: true,
        allowsRemoval: allowRemoval === true,
        plan: (current, { documents }) => {
          refuseUnread(current, documentsInForce, domain);
          if (findDomainFiles(current, documents, documentsInForce, domain).length > 0) {
            throw new HttpError(409, { detail: `there is a domain ${domain} already` });
          }
          return { put: [{ path: freePath(current, path), text: yaml }], delete: [] };
        },
      };
    });
    this.response.status = 201;
    this.response.headers.set('location', `/domains/${encodeURIComponent(domain)}`);
    return this.toWritten(domain, made.after);
  }

  static readonly PUT = op({
    summary: 'Replace the rules of a domain, or create it',
    description:
      'An existing domain needs If-Match with the entity tag that GET gave, or *. If-None-Match: * creates only.',
    path: [domainName],
    body: Type.Object({ ...yamlBody.properties, rollout }),
    otherBodies: yamlBodies,
    headers: writeHeaders,
    returns: { 200: writtenJson, 201: writtenJson },
    failures: { 409: undefined, 412: undefined, 422: refusedRules, 428: undefined, 503: undefined },
  });

  async PUT(
    { yaml: given, message, allowRemoval, rollout }: Fields<typeof Default.PUT>,
    domain: string,
  ) {
    const yaml = toFileText(given);
    let isNew = false;
    const why = message === undefined ? '' : `: ${message}`;
    const made = await this.change(`put domain ${domain}${why}`, async () => {
      const named = await this.readDomainName(yaml);
      if (named !== domain) {
        const detail = `the rules are for domain ${named}, not ${domain}`;
        throw new HttpError(400, { detail });
      }
      const { documents: documentsInForce } = this.api.snapshots;
      return {
        message,
        expectedRevision: undefined,
        toleratesOldErrors: true,
        allowsRemoval: allowRemoval === true,
        rollout,
        plan: async (current, examination) => {
          const files = await this.findExpected(current, examination, documentsInForce, domain);
          const [file, ...others] = files;
          if (others.length > 0) {
            const paths = files.map(({ path }) => path).join(', ');
            const detail = `the domain is in several files (${paths}); push a revision instead`;
            throw new HttpError(409, { detail });
          }
          isNew = file === undefined;
          const path = file?.path ?? freePath(current, toFileName(domain));
          return { put: [{ path, text: yaml }], delete: [] };
        },
      };
    });
    if (isNew) this.response.status = 201;
    return this.toWritten(domain, made.after);
  }

  static readonly DELETE = op({
    summary: 'Delete a domain',
    description: 'Needs If-Match with the entity tag that GET gave, or *.',
    path: [domainName],
    query: messageQuery,
    headers: deleteHeaders,
    returns: { 204: Type.Null() },
    failures: { 409: undefined, 412: undefined, 422: refusedRules, 428: undefined, 503: undefined },
  });

  async DELETE({ message, allowRemoval }: Fields<typeof Default.DELETE>, domain: string) {
    const made = await this.change(`delete domain ${domain}`, async () => {
      const { documents: documentsInForce } = this.api.snapshots;
      return {
        message,
        expectedRevision: undefined,
        toleratesOldErrors: true,
        allowsRemoval: allowRemoval === true,
        plan: async (current, examination) => {
          const files = await this.findExpected(current, examination, documentsInForce, domain);
          if (files.length === 0) throw noSuchDomain(domain);
          return { put: [], delete: files.map(({ path }) => path) };
        },
      };
    });
    this.response.headers.set('x-revision', made.after.id);
  }

  /** The domain's files, if they are still those that the client has seen. */
  private async findExpected(
    current: Revision,
    { documents }: Examination,
    documentsInForce: Examination['documents'],
    domain: string,
  ): Promise<readonly StoredFile[]> {
    refuseUnread(current, documentsInForce, domain);
    const files = findDomainFiles(current, documents, documentsInForce, domain);
    const ifMatch = this.request.headers.get('if-match');
    const ifNoneMatch = this.request.headers.get('if-none-match');
    const tag = await toTag(files);
    if (ifNoneMatch !== null && files.length > 0 && namesTag(ifNoneMatch, tag)) {
      throw new HttpError(412, { detail: `there is a domain ${domain} already` });
    }
    if (ifMatch !== null && (files.length === 0 || !namesTag(ifMatch, tag))) {
      const detail =
        files.length === 0
          ? `domain ${domain} no longer exists`
          : `the domain ${domain} has changed since; read it again`;
      throw new HttpError(412, { detail, ...(files.length > 0 && { headers: { etag: tag } }) });
    }
    if (ifMatch === null && files.length > 0) {
      const detail = `the domain ${domain} exists: send If-Match with the ETag of GET, or *`;
      throw new HttpError(428, { detail });
    }
    return files;
  }

  /** The domain that the rules name; 422 for unreadable rules. */
  private async readDomainName(yaml: string): Promise<string> {
    const { document, problems } = await this.api.reading.readDocument(yaml, 'body.yaml');
    if (document === undefined) throw this.refuse(422, 'the rules have errors', problems);
    return document.domain;
  }

  private async toWritten(domain: string, after: Revision) {
    const { documents } = await this.api.examine(after);
    const own = findDomainFiles(after, documents, this.api.snapshots.documents, domain);
    this.response.headers.set('etag', await toTag(own));
    return { domain, path: own[0]?.path ?? toFileName(domain), revision: after.id };
  }
}

function* listing(
  all: ReturnType<typeof listDomainFiles>,
): Generator<void, Type.Static<typeof listed>[]> {
  const domains: Type.Static<typeof listed>[] = [];
  for (const [domain, own] of all) {
    const etag = yield* tagging(own);
    domains.push({ domain, files: own.map(({ path }) => path), etag });
    yield;
  }
  return domains;
}

async function findPosition(
  files: readonly StoredFile[],
  documents: Examination['documents'],
  rule: string,
): Promise<DomainJson['place']> {
  const { document, descriptor } =
    (await runInSlices(findingRuleOwners(documents))).find(rule)?.located ?? {};
  const file = files.find(({ path }) => path === document?.file);
  const line = descriptor?.position?.line;
  const range = file && line && (await runInSlices(findingRuleLines(file.text, line)));
  return file && range ? { path: file.path, first: range.first, last: range.last } : null;
}

/** A write needs the tag of the content that the client has seen, and an unreadable file has none. */
function refuseUnread(
  current: Revision,
  documentsInForce: Examination['documents'],
  domain: string,
): void {
  const unread = findUnreadFile(current, documentsInForce, domain);
  if (unread === undefined) return;
  const { path, reason } = unread;
  const detail =
    path === '.'
      ? `it is not known whether there is a domain ${domain}: ${reason}`
      : `${path} of the domain ${domain} is not readable (${reason}): repair it where it lies, or push a revision`;
  throw new HttpError(409, { detail });
}

function noSuchDomain(domain: string): HttpError {
  return new HttpError(404, { detail: `there is no domain ${domain}` });
}
