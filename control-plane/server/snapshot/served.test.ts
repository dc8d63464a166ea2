import test from 'ava';
import { extensionsAnnouncement } from '../../../shared/rules/wire/resource-fields.ts';
import { loadProtos } from '../../../shared/wire/protos.ts';
import { ruleText } from '../../../test/support/rules-folder.ts';
import { type BuiltSnapshots, buildSnapshots } from './build.ts';
import { nodeGroupsFile } from './node-groups.ts';
import {
  compareFor,
  currentOf,
  groupOf,
  type InForce,
  nothingServed,
  type Serving,
  type Trial,
  withServing,
} from './served.ts';
import type { NodeIdentity, Snapshot } from './snapshot.ts';

const encode = loadProtos().rateLimitConfig.serialize;

/** One group gets mail only, all others get everything. */
const groupsText = `
groups:
  - name: mailers
    match: { id: 'mail-*' }
    domains: [mail]
`;

const snapshots = new Map<string, Snapshot>();
const findSnapshot = (version: string) => snapshots.get(version);

/** Returns a new object each time, like each build of a revision. */
function build(
  shop: number,
  mail: number,
  groups: string | undefined = groupsText,
): BuiltSnapshots {
  const texts = { 'shop.yaml': ruleText('shop', shop), 'mail.yaml': ruleText('mail', mail) };
  const files = Object.entries({ ...texts, ...(groups && { [nodeGroupsFile]: groups }) });
  const outcome = buildSnapshots(
    { files: files.map(([path, text]) => ({ path, text })), problems: [] },
    { mergeDomains: false, maxResponseBytes: 4 * 1024 * 1024 },
    { encode, findSnapshot },
  );
  if (!outcome.ok) throw new Error('it is invalid');
  for (const { extended, standard } of outcome.built.groups)
    for (const each of [extended, standard]) snapshots.set(each.version, each);
  return outcome.built;
}

/** The snapshot that the node is served now. */
class Served {
  now: Serving = nothingServed;
  /** Whether any node gets anything different. */
  change(to: Partial<Serving>): boolean {
    const { now, isNews } = withServing(this.now, to);
    this.now = now;
    return isNews;
  }
  current = (of: NodeIdentity) => currentOf(this.now, of);
  compare = (of: NodeIdentity) => compareFor(this.now, of);
  groupOf = (of: NodeIdentity) => groupOf(this.now, of);
}

const revision = { id: 'r', atMs: 0, author: undefined, message: undefined };
const inForce = (built: BuiltSnapshots): InForce => ({
  revision,
  sinceMs: 0,
  built,
  isAtOnce: true,
});
const trialOf = (built: BuiltSnapshots, isOffered: Trial['isOffered']): Trial => ({
  ...inForce(built),
  revision: { ...revision, files: [], problems: [] },
  earlierVerdict: undefined,
  isOffered,
});
const node = (id: string, ...metadata: (readonly [string, string])[]): NodeIdentity => ({
  id,
  cluster: '',
  metadata: new Map(metadata),
});

const nodes = {
  chosen: node('shop-1'),
  'chosen, a Ratelane worker': node('shop-2', extensionsAnnouncement),
  'not chosen': node('other-1'),
  'not chosen, a Ratelane worker': node('other-2', extensionsAnnouncement),
  'chosen, of another group': node('mail-chosen'),
  'not chosen, of another group': node('mail-other'),
};
const some: Trial['isOffered'] = ({ id }) => id.startsWith('shop-') || id === 'mail-chosen';
const noNode = () => false;
const allNodes = () => true;

/** Revisions by name, with the rules of each group: shop and mail for most groups, mail for one. */
const states: Readonly<Record<string, () => Serving>> = {
  nothing: () => ({ inForce: undefined, trial: undefined }),
  'A in force': () => ({ inForce: inForce(build(1, 1)), trial: undefined }),
  'the content of A in force under another id': () => ({
    inForce: { ...inForce(build(1, 1)), revision: { ...revision, id: 'other' } },
    trial: undefined,
  }),
  'B in force': () => ({ inForce: inForce(build(2, 1)), trial: undefined }),
  'C in force': () => ({ inForce: inForce(build(1, 3)), trial: undefined }),
  'A in force without groups': () => ({ inForce: inForce(build(1, 1, '')), trial: undefined }),
  'B on trial with no worker': () => ({
    inForce: inForce(build(1, 1)),
    trial: trialOf(build(2, 1), noNode),
  }),
  'B on trial with some': () => ({
    inForce: inForce(build(1, 1)),
    trial: trialOf(build(2, 1), some),
  }),
  'B on trial with all workers': () => ({
    inForce: inForce(build(1, 1)),
    trial: trialOf(build(2, 1), allNodes),
  }),
  'C on trial with some': () => ({
    inForce: inForce(build(1, 1)),
    trial: trialOf(build(1, 3), some),
  }),
  'A on trial with some, B in force': () => ({
    inForce: inForce(build(2, 1)),
    trial: trialOf(build(1, 1), some),
  }),
  'B on trial with some, nothing in force': () => ({
    inForce: undefined,
    trial: trialOf(build(2, 1), some),
  }),
};

/** The expected result, derived directly from the texts. */
function expectedOf({ inForce: present, trial }: Serving, of: NodeIdentity): string | undefined {
  const built = (trial?.isOffered(of) ? trial : present)?.built;
  const isMailer = of.id.startsWith('mail-') && built?.groups.length === 2;
  const group = built?.groups[isMailer ? 0 : built.groups.length - 1];
  return (of.metadata.size > 0 ? group?.extended : group?.standard)?.version;
}

for (const [from, before] of Object.entries(states)) {
  for (const [to, after] of Object.entries(states)) {
    test(`from ${from} to ${to}: each node is sent what changes for it, and nothing else`, (t) => {
      const served = new Served();
      const [first, second] = [before(), after()];
      // A trial begins while another revision is in force.
      served.change({ inForce: first.inForce });
      served.change({ trial: first.trial });
      const had = new Map(Object.values(nodes).map((each) => [each.id, served.current(each)]));
      const isNews = served.change(second);
      // Like a stream, it compares objects, and sends nothing if they are the same.
      const notified = new Map(
        Object.values(nodes).flatMap((each) => {
          const now = served.current(each);
          return isNews && now !== had.get(each.id) ? [[each.id, now?.version]] : [];
        }),
      );
      const isTried = first.trial !== undefined || second.trial !== undefined;
      const isSame = first.inForce?.built.content === second.inForce?.built.content;
      t.is(isNews, isTried || !isSame);
      for (const [name, each] of Object.entries(nodes)) {
        const [old, now] = [expectedOf(first, each), expectedOf(second, each)];
        t.is(served.current(each)?.version, now, name);
        t.is(notified.has(each.id), old !== now, `${name} is notified`);
        if (old !== now) t.is(notified.get(each.id), now, name);
      }
    });
  }
}

test('a field that is left out of a change stays as it is', (t) => {
  const served = new Served();
  const [a, b] = [build(1, 1), build(2, 1)];
  served.change({ inForce: inForce(a) });
  const before = served.now.inForce;
  served.change({ trial: trialOf(b, some) });
  t.is(served.now.inForce, before);
  const { trial } = served.now;
  served.change({ inForce: inForce(b) });
  t.is(served.now.trial, trial);
  served.change({ trial: undefined });
  t.deepEqual([served.now.inForce?.built.content, served.now.trial], [b.content, undefined]);
});

test('no node is notified of a change that changes nothing', (t) => {
  const served = new Served();
  served.change({ inForce: inForce(build(1, 1)), trial: trialOf(build(2, 1), some) });
  const { now } = served;
  t.false(served.change({}));
  t.false(served.change({ ...now }));
  t.is(served.now, now);
});

test('a node is compared with and without the trial, whether it is chosen or not', (t) => {
  const served = new Served();
  const versions = (given: NodeIdentity) => {
    const both = served.compare(given);
    return both && [both.before?.version, both.after?.version];
  };
  const [a, b] = [build(1, 1), build(2, 1)];
  const [mailGroup, allGroup] = a.groups;
  served.change({ inForce: inForce(a) });
  t.is(versions(nodes.chosen), undefined);
  served.change({ trial: trialOf(b, some) });
  for (const each of [nodes.chosen, nodes['not chosen']])
    t.deepEqual(versions(each), [allGroup?.standard.version, b.groups[1]?.standard.version]);
  const mail = mailGroup?.standard.version;
  t.deepEqual(versions(nodes['chosen, of another group']), [mail, mail]);
  served.change({ inForce: undefined });
  t.is(versions(nodes.chosen)?.[0], undefined);
});

test("a node's group is that of what it is served", (t) => {
  const served = new Served();
  t.is(served.groupOf(nodes['chosen, of another group']), undefined);
  served.change({ inForce: inForce(build(1, 1)) });
  t.is(served.groupOf(nodes['chosen, of another group']), 'mailers');
  t.is(served.groupOf(nodes.chosen), 'default');
  served.change({ trial: trialOf(build(1, 1, ''), some) });
  t.is(served.groupOf(nodes['chosen, of another group']), 'default');
  t.is(served.groupOf(nodes['not chosen, of another group']), 'mailers');
});

test('equal snapshots are the same objects through a trial and its end', (t) => {
  const served = new Served();
  served.change({ inForce: inForce(build(1, 1)) });
  const seen = (): (Snapshot | undefined)[] =>
    Object.values(nodes).map((each) => served.current(each));
  const old = seen();
  served.change({ trial: trialOf(build(2, 1), allNodes) });
  const tried = seen();
  served.change({ inForce: inForce(build(2, 1)), trial: undefined });
  t.deepEqual(
    seen().map((each, index) => each === tried[index]),
    [true, true, true, true, true, true],
  );
  t.deepEqual(
    seen().map((each, index) => each === old[index]),
    [false, false, false, false, true, true],
  );
});

test('equal snapshots are the same objects in whichever group they are', (t) => {
  const served = new Served();
  served.change({ inForce: inForce(build(1, 1)) });
  const [all, mail] = [nodes.chosen, nodes['chosen, of another group']].map((node) =>
    served.current(node),
  );
  const swapped = groupsText.replace('mail-*', 'shop-*');
  served.change({ inForce: inForce(build(1, 1, swapped)) });
  t.is(served.current(nodes.chosen), mail);
  t.is(served.current(nodes['chosen, of another group']), all);
});
