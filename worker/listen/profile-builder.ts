// Converts call stacks with values to the gzipped protobuf that `go tool pprof` and similar tools read.
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import {
  Line,
  Location,
  Profile,
  Function as ProfiledFunction,
  Sample,
  StringTable,
  ValueType,
} from 'pprof-format';
import { createFindPosition } from '../../shared/source-positions.ts';

/** A function on a stack, as named by the JavaScript engine. */
export interface Frame {
  /** '' for an anonymous function. */
  readonly functionName: string;
  /** The location of the code; '' for the engine's own. */
  readonly url: string;
  /** 0-based, as in the engine; -1 without a line. */
  readonly lineNumber: number;
}

export interface Measure {
  readonly type: string;
  readonly unit: string;
}

export interface ProfileBuilder {
  /** `stack` begins with the innermost function; `values` has one number for each measure. */
  add(stack: readonly Frame[], values: readonly number[]): void;
  encode(): Promise<Buffer>;
}

const compress = promisify(gzip);
/** A column beyond all code of a line. */
const lineEnd = Number.MAX_SAFE_INTEGER;

export function createProfileBuilder({
  measures,
  period,
  durationMs,
  startedAtMs,
}: {
  readonly measures: readonly Measure[];
  /** How much of the last measure is between two samples. */
  readonly period: number;
  readonly durationMs: number;
  /** Wall time. */
  readonly startedAtMs: number;
}): ProfileBuilder {
  const findPosition = createFindPosition();
  const strings = new StringTable();
  const functions = new Map<string, ProfiledFunction>();
  const locations = new Map<string, Location>();
  const samples: Sample[] = [];
  const types = measures.map(
    ({ type, unit }) => new ValueType({ type: strings.dedup(type), unit: strings.dedup(unit) }),
  );

  function toLocation(frame: Frame): Location {
    const name = frame.functionName || '(anonymous)';
    const position = findPosition(frame.url, frame.lineNumber, lineEnd);
    const line = position?.line ?? frame.lineNumber + 1;
    const file = position?.path ?? frame.url.replace(/^file:\/\//, '');
    const functionKey = `${name}\n${file}`;
    const locationKey = `${functionKey}\n${line}`;
    const known = locations.get(locationKey);
    if (known !== undefined) return known;
    let code = functions.get(functionKey);
    if (code === undefined) {
      const nameIndex = strings.dedup(name);
      code = new ProfiledFunction({
        id: functions.size + 1,
        name: nameIndex,
        systemName: nameIndex,
        filename: strings.dedup(file),
        startLine: line,
      });
      functions.set(functionKey, code);
    }
    const location = new Location({
      id: locations.size + 1,
      line: [new Line({ functionId: code.id, line })],
    });
    locations.set(locationKey, location);
    return location;
  }

  return {
    add(stack, values) {
      const locationId = stack.map((frame) => toLocation(frame).id);
      samples.push(new Sample({ locationId, value: [...values] }));
    },
    async encode() {
      const periodType = types.at(-1);
      const profile = new Profile({
        sampleType: types,
        sample: samples,
        location: [...locations.values()],
        function: [...functions.values()],
        stringTable: strings,
        timeNanos: BigInt(Math.round(startedAtMs)) * 1_000_000n,
        durationNanos: BigInt(Math.round(durationMs)) * 1_000_000n,
        ...(periodType === undefined ? {} : { periodType }),
        period,
      });
      return compress(profile.encode());
    },
  };
}
