// Reads files of recorded decisions (control-plane/docs/commands.md) of any size in bounded memory, and separates the
// records from any other lines.
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import {
  decisionRecordVersion,
  type RecordedDecision,
  type RecordedDescriptor,
  type RecordedStatus,
  type RecordGap,
  type RecordHeader,
} from '../../../../shared/decision-record.ts';
import { unreadable } from '../../../../shared/rules-directory.ts';

export interface RecordedDecisions {
  /** The decisions in chronological order across files; within one file, in the file's order. Ends early when a file
   * cannot be read further; `problem` then has the reason. Can be iterated once. */
  readonly batches: AsyncIterable<readonly RecordedDecision[]>;
  /** The figures of the part read so far. */
  readonly reading: RecordingReading;
}

export interface RecordingReading {
  readonly bytes: number;
  /** The total size of all files; a file may grow meanwhile. */
  readonly totalBytes: number;
  readonly decisions: number;
  /** The first header of each file. */
  readonly headers: readonly RecordHeader[];
  /** Whether decisions precede the first header. */
  readonly lacksHeader: boolean;
  readonly gaps: readonly RecordGap[];
  /** Missing decisions, over all gaps. */
  readonly dropped: number;
  /** The first lines that are not records. */
  readonly leftOut: readonly LeftOutLine[];
  readonly leftOutCount: number;
  /** Why a file could not be read to its end, without a final full stop. */
  readonly problem: string | undefined;
}

export interface LeftOutLine {
  readonly file: string;
  /** 1-based. */
  readonly line: number;
  readonly reason: string;
}

export type RecordedDecisionsResult =
  | { readonly ok: true; readonly recorded: RecordedDecisions }
  | { readonly ok: false; readonly message: string };

/** The most omitted lines that are listed, and the most gaps. */
const mostNamed = 20;
/** Far above what a worker writes; a longer line is skipped without being buffered. */
const maxLineBytes = 1024 * 1024;
const chunkBytes = 256 * 1024;
const newline = 0x0a;

/** Does not open the files yet. Fails for a path that is not a file. `newestBytes`: of a longer file, only its header
 * and this many bytes at its end are read, and its lines are numbered from there. */
export async function openRecordedDecisions(
  paths: readonly string[],
  newestBytes = Number.POSITIVE_INFINITY,
): Promise<RecordedDecisionsResult> {
  const begins: number[] = [];
  let totalBytes = 0;
  for (const path of paths) {
    const found = await stat(path).catch((error: unknown) => unreadable(error));
    if (typeof found === 'string') return { ok: false, message: `'${path}' ${found}` };
    if (!found.isFile()) return { ok: false, message: `'${path}' is not a file` };
    const begin = Math.max(0, found.size - newestBytes);
    begins.push(begin);
    totalBytes += found.size - begin;
  }
  const reading = new Reading(totalBytes);
  const files = paths.map((path, index) => readFile(path, begins[index] ?? 0, reading));
  const [first] = files;
  const batches = files.length === 1 && first !== undefined ? first : mergeByTime(files);
  return { ok: true, recorded: { batches, reading } };
}

class Reading implements RecordingReading {
  readonly totalBytes: number;
  bytes = 0;
  decisions = 0;
  readonly headers: RecordHeader[] = [];
  lacksHeader = false;
  readonly gaps: RecordGap[] = [];
  dropped = 0;
  readonly leftOut: LeftOutLine[] = [];
  leftOutCount = 0;
  problem: string | undefined;

  constructor(totalBytes: number) {
    this.totalBytes = totalBytes;
  }

  leaveOut(line: LeftOutLine): void {
    this.leftOutCount++;
    if (this.leftOut.length < mostNamed) this.leftOut.push(line);
  }
}

async function* readFile(
  path: string,
  begin: number,
  reading: Reading,
): AsyncGenerator<RecordedDecision[]> {
  /** The version of the header in force; undefined before the first one. */
  let version: unknown;
  let hasHeader = false;
  let lineNumber = 0;
  const found: RecordedDecision[] = [];

  function receiveLine(text: string): void {
    lineNumber++;
    const record = parseRecord(text);
    if (typeof record === 'string') {
      reading.leaveOut({ file: path, line: lineNumber, reason: record });
    } else if ('decisions' in record) {
      version = record.decisions;
      if (version !== decisionRecordVersion) {
        const reason = `version ${String(version)} of the format is not known`;
        reading.leaveOut({ file: path, line: lineNumber, reason });
      } else if (!hasHeader) {
        reading.headers.push(record);
        hasHeader = true;
      }
    } else if (version !== undefined && version !== decisionRecordVersion) {
      const reason = 'it follows the header of another version';
      reading.leaveOut({ file: path, line: lineNumber, reason });
    } else if ('dropped' in record) {
      reading.dropped += record.dropped;
      if (reading.gaps.length < mostNamed) reading.gaps.push(record);
    } else {
      if (version === undefined) reading.lacksHeader = true;
      reading.decisions++;
      found.push(record);
    }
  }

  const lines = createLines(receiveLine, () => {
    const reason = `it is longer than ${maxLineBytes} bytes`;
    reading.leaveOut({ file: path, line: ++lineNumber, reason });
  });
  try {
    let isInside = begin > 0;
    if (isInside) receiveLine(await readFirstLine(path));
    for await (const read of createReadStream(path, { start: begin, highWaterMark: chunkBytes })) {
      const bytes = read as Buffer;
      reading.bytes += bytes.length;
      // The rest of a line whose beginning was skipped.
      const end = isInside ? bytes.indexOf(newline) : -1;
      if (isInside && end === -1) continue;
      isInside = false;
      lines.receive(bytes.subarray(end + 1));
      if (found.length > 0) yield found.splice(0);
    }
    lines.end();
    if (found.length > 0) yield found.splice(0);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error;
    reading.problem ??= `'${path}' ${unreadable(error)} after ${reading.bytes} bytes`;
  }
}

async function readFirstLine(path: string): Promise<string> {
  for await (const chunk of createReadStream(path, { end: chunkBytes - 1 })) {
    const text = String(chunk);
    return text.slice(0, Math.max(0, text.indexOf('\n')));
  }
  return '';
}

/** Splits chunks into lines. The last line may lack a newline. */
function createLines(receiveLine: (text: string) => void, receiveLong: () => void) {
  let rest: Buffer[] = [];
  let restBytes = 0;
  let isTooLong = false;

  function endLine(last: Buffer): void {
    if (isTooLong || restBytes + last.length > maxLineBytes) receiveLong();
    else
      receiveLine(rest.length === 0 ? last.toString() : Buffer.concat([...rest, last]).toString());
    rest = [];
    restBytes = 0;
    isTooLong = false;
  }

  return {
    receive(chunk: Buffer): void {
      let from = 0;
      for (let to = chunk.indexOf(newline); to !== -1; to = chunk.indexOf(newline, from)) {
        endLine(chunk.subarray(from, to));
        from = to + 1;
      }
      if (from === chunk.length || isTooLong) return;
      restBytes += chunk.length - from;
      isTooLong = restBytes > maxLineBytes;
      if (isTooLong) rest = [];
      else rest.push(chunk.subarray(from));
    },
    end(): void {
      if (restBytes > 0) endLine(Buffer.alloc(0));
    },
  };
}

interface Head {
  readonly rest: AsyncIterator<readonly RecordedDecision[]>;
  batch: readonly RecordedDecision[];
  next: number;
}

/** How many decisions of several files are merged at a time. */
const mergedBatch = 1_000;

async function* mergeByTime(
  files: readonly AsyncGenerator<readonly RecordedDecision[]>[],
): AsyncGenerator<readonly RecordedDecision[]> {
  const heads: Head[] = [];
  for (const rest of files) {
    const { value, done } = await rest.next();
    if (!done) heads.push({ rest, batch: value, next: 0 });
  }
  let merged: RecordedDecision[] = [];
  while (heads.length > 0) {
    let earliest = heads[0] as Head;
    for (const head of heads) if (timeOf(head) < timeOf(earliest)) earliest = head;
    merged.push(earliest.batch[earliest.next++] as RecordedDecision);
    if (merged.length >= mergedBatch) {
      yield merged;
      merged = [];
    }
    if (earliest.next < earliest.batch.length) continue;
    const { value, done } = await earliest.rest.next();
    if (done) heads.splice(heads.indexOf(earliest), 1);
    else Object.assign(earliest, { batch: value, next: 0 });
  }
  if (merged.length > 0) yield merged;
}

function timeOf({ batch, next }: Head): number {
  return batch[next]?.time ?? 0;
}

/** The record in a line, or why the line is not one. */
function parseRecord(text: string): RecordHeader | RecordedDecision | RecordGap | string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return text.startsWith('{') ? 'it is cut, or not JSON' : 'it is not JSON';
  }
  if (typeof value !== 'object' || value === null) return 'it is not an object';
  if ('decisions' in value) {
    const wrong = wrongHeaderMembers(value);
    if (wrong.length === 0) return value as RecordHeader;
    return `it is a header of which these members are missing or wrong: ${wrong.join(', ')}`;
  }
  if ('domain' in value) return isDecision(value) ? value : 'it is a decision without its members';
  if ('dropped' in value) return isGap(value) ? value : 'it is a gap without its members';
  return 'it is neither a header, nor a decision, nor a gap';
}

/** The names of the invalid members; of another format version, only the version is checked. */
function wrongHeaderMembers(value: object): string[] {
  const { decisions, rate, hashed_keys, settings } = value as Partial<RecordHeader>;
  if (decisions !== decisionRecordVersion) {
    return typeof decisions === 'number' ? [] : ['decisions'];
  }
  const isGood = {
    rate: typeof rate === 'number' && rate > 0 && rate <= 1,
    hashed_keys: Array.isArray(hashed_keys) && hashed_keys.every((key) => typeof key === 'string'),
    'settings.week_reset_day':
      typeof settings === 'object' && [0, 1, 2, 3, 4, 5, 6].includes(settings?.week_reset_day),
  };
  return Object.entries(isGood).flatMap(([name, good]) => (good ? [] : name));
}

/** The latest time that a date can hold. */
const latestMs = 8.64e15;

function isTime(time: unknown): time is number {
  return typeof time === 'number' && time >= 0 && time <= latestMs;
}

function isCount(count: unknown): boolean {
  return typeof count === 'number' && Number.isInteger(count) && count >= 0;
}

function isGap(value: object): value is RecordGap {
  const { dropped, from, time } = value as Partial<RecordGap>;
  return isCount(dropped) && isTime(from) && isTime(time);
}

function isDecision(value: object): value is RecordedDecision {
  const { time, domain, descriptors, hits_addend, code, statuses } =
    value as Partial<RecordedDecision>;
  return (
    isTime(time) &&
    typeof domain === 'string' &&
    domain !== '' &&
    Array.isArray(descriptors) &&
    descriptors.length > 0 &&
    descriptors.every(isDescriptor) &&
    (hits_addend === undefined || isCount(hits_addend)) &&
    (code === 'ERROR' ||
      ((code === 'OK' || code === 'OVER_LIMIT') &&
        Array.isArray(statuses) &&
        statuses.length === descriptors.length &&
        statuses.every(isStatus)))
  );
}

function isDescriptor(value: unknown): value is RecordedDescriptor {
  if (typeof value !== 'object' || value === null) return false;
  const { entries, hits_addend, limit } = value as Partial<RecordedDescriptor>;
  return (
    Array.isArray(entries) &&
    entries.every(
      (entry) =>
        typeof entry === 'object' &&
        entry !== null &&
        typeof entry.key === 'string' &&
        typeof entry.value === 'string',
    ) &&
    (hits_addend === undefined ||
      isCount(hits_addend) ||
      (typeof hits_addend === 'string' && /^\d{1,20}$/.test(hits_addend))) &&
    (limit === undefined ||
      (typeof limit === 'object' &&
        limit !== null &&
        isCount(limit.requests_per_unit) &&
        isCount(limit.unit)))
  );
}

function isStatus(value: unknown): value is RecordedStatus {
  if (typeof value !== 'object' || value === null) return false;
  const { code, rule } = value as Partial<RecordedStatus>;
  return (
    (code === 'OK' || code === 'OVER_LIMIT') && (rule === undefined || typeof rule === 'string')
  );
}
