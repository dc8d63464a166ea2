// Decodes Huffman-coded strings (RFC 7541, section 5.2), eight bits per step. Callers decide what an invalid string
// means.
import { endOfString, listHuffmanCodes } from './huffman-code.ts';

/**
 * The inner nodes of the code's tree by number, from the root, 0. A node is the state of the decoder: the bits read
 * since the last complete symbol lead from the root to it.
 */
const nodeCount = 256;
/** The state after the end-of-string symbol, which is never left. */
const failed = nodeCount;
/** The leaf of symbol 0 of the code's tree; those of the others follow. */
const firstLeaf = nodeCount;

/**
 * The symbols that the bits of one octet complete, and the state afterwards, in one number. An octet completes at most
 * two symbols, as no code has less than five bits. The fields, from the lowest bit:
 *
 * - 8 bits: the first symbol
 * - 9 bits: the state; together with the next octet in the lowest bits it is the index of the next step
 * - 8 bits: the second symbol
 * - 2 bits: the number of symbols
 * - 1 bit: 1 if one of the symbols is allowed in no header value (RFC 9113, section 8.2.1)
 */
type Step = number;
const stateShift = 8;
const stateMask = 0x1ff << stateShift;
const secondSymbolShift = 17;
const countShift = 25;
const countMask = 3;
const controlShift = 27;

const tree = growTree();
/** For each state and octet. */
const steps = tabulateSteps();
/** For each state: 1 if a string may end in it, with less than eight bits left, all of them ones. */
const endings = tabulateEndings();

/** Longer strings get their own buffer. */
const scratch = Buffer.allocUnsafeSlow(8192);

/** The string in bytes[start, end); undefined if its code or padding is invalid. */
export function decodeHuffman(bytes: Buffer, start: number, end: number): string | undefined {
  // Each step writes two symbols, even if it completes fewer. A buffer stores the lowest eight bits of a number.
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
  /** The bits that any step has: from `controlShift` on only the flag, which is the highest field. */
  let union = 0;
  for (let position = start; position < end; position++) {
    const step = steps[state | (bytes[position] ?? 0)] ?? 0;
    scratch[length] = step;
    scratch[length + 1] = step >>> secondSymbolShift;
    length += (step >>> countShift) & countMask;
    state = step & stateMask;
    union |= step;
  }
  if (endings[state >>> stateShift] !== 1 || union >>> controlShift !== 0) return undefined;
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

/** The children of node n are at 2n, for the bit 0, and 2n + 1: an inner node, or a leaf. */
function growTree(): Uint16Array {
  const children = new Uint16Array(2 * nodeCount);
  let nodes = 1;
  for (const [symbol, { bits, length }] of listHuffmanCodes().entries()) {
    let node = 0;
    for (let shift = length - 1; shift > 0; shift--) {
      const branch = 2 * node + ((bits >>> shift) & 1);
      // The root is the child of no node, so 0 is a branch that no code has used yet.
      if (children[branch] === 0) children[branch] = nodes++;
      node = children[branch] ?? 0;
    }
    children[2 * node + (bits & 1)] = firstLeaf + symbol;
  }
  return children;
}

function tabulateSteps(): Int32Array {
  const table = new Int32Array(256 * (nodeCount + 1));
  for (let state = 0; state <= failed; state++)
    fillSteps(table, 256 * state, 8, state << stateShift);
  return table;
}

/**
 * Fills the 2 ** bitsLeft places from `first`, which are for one state and all octets that begin with the same bits:
 * `step` is what these bits have led to.
 */
function fillSteps(table: Int32Array, first: number, bitsLeft: number, step: Step): void {
  if (bitsLeft === 0) {
    table[first] = step;
    return;
  }
  fillSteps(table, first, bitsLeft - 1, readBit(step, 0));
  fillSteps(table, first + 2 ** (bitsLeft - 1), bitsLeft - 1, readBit(step, 1));
}

function readBit(step: Step, bit: number): Step {
  const state = (step & stateMask) >>> stateShift;
  if (state === failed) return step;
  const child = tree[2 * state + bit] ?? 0;
  const symbols = step & ~stateMask;
  if (child < firstLeaf) return symbols | (child << stateShift);
  const symbol = child - firstLeaf;
  // After a symbol the state is the root, 0.
  return symbol === endOfString ? symbols | (failed << stateShift) : addSymbol(symbols, symbol);
}

function addSymbol(step: Step, symbol: number): Step {
  const isFirst = step >>> countShift === 0;
  const added = isFirst ? symbol : symbol << secondSymbolShift;
  const control = isControl(symbol) ? 1 << controlShift : 0;
  return (step | added | control) + (1 << countShift);
}

/** Padding is the beginning of the end-of-string symbol's code, which has ones only. */
function tabulateEndings(): Uint8Array {
  const table = new Uint8Array(nodeCount + 1);
  let node = 0;
  for (let ones = 0; ones < 8; ones++) {
    table[node] = 1;
    node = tree[2 * node + 1] ?? 0;
  }
  return table;
}
