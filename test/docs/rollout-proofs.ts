// For each line of two tables a test that shows it: what happens in a rollout (control-plane/docs/operating.md), and
// what each token may do (SECURITY.md). Operators read those; this is for those who change what they say.

export interface RolloutProof {
  /** The first cell of the line. */
  readonly line: string;
  /** From the root of the project. */
  readonly file: string;
  /** A test's title, or a part of it that stands in the file. */
  readonly text: string;
}

const rollout = 'control-plane/rollout/rollout.test.ts';
const proof = (line: string, text: string, file = rollout): RolloutProof => ({ line, file, text });

export const rolloutProofs: readonly RolloutProof[] = [
  proof(
    'all workers of the step have it, and do as well as the others',
    'a share of the workers gets a revision first, and the others when they have held it',
  ),
  proof(
    'a third of the workers of the step or more refuse it',
    'what a third of the share refuses is taken back at once, and no more than the share saw it',
  ),
  proof(
    'fewer refuse it, and others have accepted it',
    'what fewer than a third refuse and others have accepted is paused with the name',
  ),
  proof(
    'errors are more than 1 point above those of the others, or requests over limit more than 10 points (`over-limit=10`) and three times as many, with 100 decisions on either side',
    'is taken back within five seconds of the evidence',
  ),
  proof(
    'one worker of three or more on a side alone makes the difference',
    'one worker of several that says something else pauses the rollout with its name, and takes nothing back',
  ),
  proof(
    'fewer than 100 decisions on either side',
    'with too little traffic a step is watched twice, and then goes on or waits for somebody',
  ),
  proof(
    'workers with it vanish without a goodbye: more than a third of them, and more than elsewhere',
    'workers with it that vanish, more than a third of them and more than elsewhere, have it taken back',
  ),
  proof(
    'all workers of the step leave with a goodbye, or go to another control plane',
    'where all workers of the share leave with a goodbye, others get it in their place',
  ),
  proof(
    'a worker of the step gives no answer',
    'a worker that never answers keeps the others from getting it, and does not hide that it is bad',
  ),
  proof(
    'a peer gives no answer',
    'a peer that gives no answer keeps the rollout where it is, and does not hide that it is bad',
  ),
  proof(
    'a peer cannot follow: it is new, and its directory has newer rules, which are invalid or held back',
    'a rollout that a new control plane cannot follow, as the newest rules are held back, waits for somebody and says so',
    'control-plane/rollout/finds.test.ts',
  ),
  proof(
    'workers connect later, or again',
    'workers that connect later do not make a share larger, however often they do',
  ),
  proof(
    'no share can be made: one worker alone, or workers of other makes with one node id',
    'where no share can be made the revision waits for an approval, and status says why',
  ),
  proof(
    'somebody goes back: in the files, in Git, with `rollback`, `push --now` or `rollout abort`',
    'an undo is at once: ',
  ),
  proof('another revision comes', 'a revision that comes during a rollout waits for its end'),
  proof(
    'another revision comes with `--supersede`, or a line `Rollout: supersede` in its message',
    'a revision may supersede the one on its way',
  ),
  proof('somebody pauses it', 'what is bad is taken back while it is paused, too'),
  proof(
    'the control plane that leads is stopped',
    'a control plane that is stopped hands over: another one leads at once, and nothing is paused',
  ),
  proof(
    'the control plane that leads is killed',
    'a control plane that is killed and started again goes on where it was, with the same workers',
  ),
  proof(
    'the record cannot be read or written',
    'while the record cannot be reached no step is taken, and what is bad leaves the workers all the same',
  ),
  proof(
    'the store takes no writes',
    'where the record takes no writes for a while, that is said, and it is shared again when it does',
  ),
  proof(
    'a control plane starts with an empty state directory',
    'a control plane with an empty state directory gives nobody what was taken back, held back or is on trial',
  ),
  proof(
    'the record is damaged, or of a newer version',
    'a record that is cut, newer or written by hand is refused by name, and the rollout waits for a person',
    'test/feature/rollout/memory.test.ts',
  ),
];

const rights = 'test/feature/rollout/rights.test.ts';
const tokens = 'control-plane/admin/authorize.test.ts';

/** In the order of the table; a line may have several. */
export const rightsProofs: readonly RolloutProof[] = [
  proof(
    'reads the rules of every node group: its group follows from what it says of itself',
    'a node is in the first group all of whose conditions it meets',
    'control-plane/snapshot/node-groups-file.test.ts',
  ),
  proof(
    'refuses a revision: that is its share of the evidence, a pause with its name where fewer than a third refuse',
    'what fewer than a third refuse and others have accepted is paused with the name',
  ),
  proof(
    'reports wrong figures of itself: one worker of three or more on a side neither takes a revision back nor lets a bad one through',
    'one worker of several that says something else pauses the rollout with its name, and takes nothing back',
  ),
  proof(
    'reports wrong figures of itself: one worker of three or more on a side neither takes a revision back nor lets a bad one through',
    'one of the others that claims to be limited does not make a bad revision good',
  ),
  proof(
    'cannot speak for another worker: figures count with the stream of rules of the same instance and node id alone',
    'of another instance',
    'control-plane/rollout/facts.test.ts',
  ),
  proof(
    'cannot take the place of an instance that is connected, neither its stream of rules',
    'a second stream of a connected instance is refused by name, and the first one stays',
    'control-plane/xds/leaving.test.ts',
  ),
  proof(
    'nor its link',
    'a second link of a connected instance is refused by name, and the first one stays',
    'control-plane/fleet/fleet.test.ts',
  ),
  proof(
    'cannot choose to be among the first: they are others each time',
    'other workers are first in each rollout',
  ),
  proof(
    'cannot make the share larger, however often it connects',
    'workers that connect later do not make a share larger, however often they do',
  ),
  proof(
    'takes no room in the tables of what is limited and unmatched from the links of others',
    'a link that fills the tables takes nothing from the links beside it',
    'control-plane/fleet/fleet-link.test.ts',
  ),
  proof(
    'is as many workers as it opens connections with instances of their own, and outvotes the others with enough of them',
    'whoever opens enough connections outvotes the other workers of a rollout',
    rights,
  ),
  proof('asks nothing of the admin API', "['GET', '/domains', worker, 401]", tokens),
  proof(
    "all that a worker's token may, which the start says with `--rollout`",
    'and bear witness for or against a revision with as many workers as it opens connections',
    'control-plane/settings.test.ts',
  ),
  proof(
    'sees rules, revisions, workers and values that are limited, and checks rules; changes nothing, steers no rollout and approves nothing',
    'a reader may look at a rollout, and neither steer it nor approve anything',
    rights,
  ),
  proof(
    'sees what control planes ask of each other in a rollout',
    'the token of the peers may ask what peers ask of each other in a rollout, and change nothing',
    tokens,
  ),
  proof(
    'cannot make a control plane read the record from Git more often than every 2 s by that',
    'hints about the record make a control plane read it every two seconds at most',
    rights,
  ),
  proof(
    'keeps a control plane that has lost its leader from taking a bad revision back by that, until the lease has ended and no longer',
    'hints of a reader keep nobody from taking the lead of a rollout and taking it back',
    rights,
  ),
  proof(
    'changes rules, gives them to all workers at once, steers rollouts and approves; each change has its name in the audit log, and in the record where it is about a rollout',
    'somebody pauses, resumes and aborts, at whichever control plane',
  ),
  proof(
    "nothing but `/healthcheck`, the console's files and a signed webhook, where tokens are asked for",
    'where others can reach the address, nobody has access without a token',
    tokens,
  ),
  proof(
    'ends, speeds up and approves rollouts, and makes what was taken back forgotten; what is no record stops them, and is named',
    'a record that is cut, newer or written by hand is refused by name, and the rollout waits for a person',
    'test/feature/rollout/memory.test.ts',
  ),
];
