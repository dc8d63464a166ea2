// Decodes Huffman-coded strings (RFC 7541, section 5.2), eight bits per step. Callers decide what an invalid string
// means.
import { endOfString, listHuffmanCodes } from './huffman-code.ts';

/** A state is an inner node of the code's tree: the bits read since the last complete symbol. */
const stateCount = 256;
/** The state after the end-of-string symbol, which is never left. */
const failed = stateCount;

/**
 * A step for each state and octet: the next state, and the symbols that the octet completes. There are at most two, as
 * no code has less than five bits.
 *
 * From the lowest bit: first symbol (8), next state (9), second symbol (8), number of symbols (2).
 * The next state stands where the next octet can be joined to it to find the next step. Above them: 1 if
 * one of the symbols may be in no header value (RFC 9113, section 8.2.1).
 */
const stateShift = 8;
const stateMask = 0x1ff << stateShift;
const secondSymbolShift = 17;
const countShift = 25;
const countMask = 3;
const controlShift = 27;

const tree = growTree();
const steps = tabulateSteps();
/** For each state: 1 if a string may end in it, with less than eight bits left, all of them ones. */
const endings = tabulateEndings();

/** Longer strings get their own buffer. */
const scratch = Buffer.allocUnsafeSlow(8192);

/** The string in bytes[start, end); undefined if its code or padding is invalid. */
export function decodeHuffman(bytes: Buffer, start: number, end: number): string | undefined {
  // Each step writes two symbols, even if it completes fewer.
  const most = 2 * (end - start);
  const output = most <= scratch.length ? scratch : Buffer.allocUnsafeSlow(most);
  let state = 0;
  let length = 0;
  for (let position = start; position < end; position++) {
    const step = steps[state | (bytes[position] ?? 0)] ?? 0;
    output[length] = step;
    output[length + 1] = step >>> secondSymbolShift;
    length += (step >>> countShift) & countMask;
    state = step & stateMask;
  }
  return endings[state >>> stateShift] === 1 ? output.toString('latin1', 0, length) : undefined;
}

/**
 * The length of the string in bytes[start, end), without decoding it: undefined if its code or padding is invalid, it
 * is not a header value (RFC 9113, section 8.2.1), or it is very long.
 */
export function measureHuffmanValue(bytes: Buffer, start: number, end: number): number | undefined {
  if (2 * (end - start) > scratch.length) return undefined;
  let state = 0;
  let length = 0;
  let all = 0;
  for (let position = start; position < end; position++) {
    const step = steps[state | (bytes[position] ?? 0)] ?? 0;
    scratch[length] = step;
    scratch[length + 1] = step >>> secondSymbolShift;
    length += (step >>> countShift) & countMask;
    state = step & stateMask;
    all |= step;
  }
  if (endings[state >>> stateShift] !== 1 || all >>> controlShift !== 0) return undefined;
  return hasBlankEnds(scratch, 0, length) ? undefined : length;
}

/** Whether a value begins or ends with white space, which is not allowed. */
export function hasBlankEnds(bytes: Buffer, start: number, end: number): boolean {
  return start < end && (isBlank(bytes[start] ?? 0) || isBlank(bytes[end - 1] ?? 0));
}

function isBlank(octet: number): boolean {
  return octet === 0x20 || octet === 0x09;
}

/** NUL, LF and CR are not allowed anywhere in a value. */
export function isControl(octet: number): boolean {
  return octet === 0 || octet === 0x0a || octet === 0x0d;
}

/** The children of node n are at 2n and 2n + 1: the number of a node, or a symbol's complement. */
function growTree(): Int16Array {
  const children = new Int16Array(2 * stateCount);
  let nodes = 1;
  for (const [symbol, { bits, length }] of listHuffmanCodes().entries()) {
    let node = 0;
    for (let shift = length - 1; shift > 0; shift--) {
      const branch = 2 * node + ((bits >>> shift) & 1);
      if (children[branch] === 0) children[branch] = nodes++;
      node = children[branch] ?? 0;
    }
    children[2 * node + (bits & 1)] = ~symbol;
  }
  return children;
}

/** Combines each step from two four-bit steps, each of which completes at most one symbol. */
function tabulateSteps(): Int32Array {
  const halves = new Int32Array(16 * (stateCount + 1)).fill(failed << stateShift);
  for (let index = 0; index < 16 * stateCount; index++) {
    let node = index >>> 4;
    let completed = 0;
    for (let shift = 3; shift >= 0 && node !== failed; shift--) {
      const child = tree[2 * node + ((index >>> shift) & 1)] ?? 0;
      if (child >= 0) node = child;
      else if (~child === endOfString) node = failed;
      else {
        completed = ~child | (1 << countShift);
        node = 0;
      }
    }
    halves[index] = completed | (node << stateShift);
  }

  const table = new Int32Array(256 * (stateCount + 1));
  for (let index = 0; index < table.length; index++) {
    const upper = halves[index >>> 4] ?? 0;
    const lower = halves[((upper & stateMask) >>> 4) | (index & 15)] ?? 0;
    const isSecond = upper >>> countShift === 1;
    const step = isSecond ? moveToSecond(lower) + (upper & 0xff) + (1 << countShift) : lower;
    table[index] = hasControl(step) ? step | (1 << controlShift) : step;
  }
  return table;
}

function hasControl(step: number): boolean {
  const count = step >>> countShift;
  return (
    (count > 0 && isControl(step & 0xff)) ||
    (count > 1 && isControl((step >>> secondSymbolShift) & 0xff))
  );
}

function moveToSecond(step: number): number {
  const symbol = step & 0xff;
  return step - symbol + (symbol << secondSymbolShift);
}

function tabulateEndings(): Uint8Array {
  const table = new Uint8Array(stateCount + 1);
  let node = 0;
  for (let ones = 0; ones < 8; ones++) {
    table[node] = 1;
    node = tree[2 * node + 1] ?? 0;
  }
  return table;
}
