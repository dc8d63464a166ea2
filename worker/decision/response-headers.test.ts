import test from 'ava';
import type { Unit } from '../../shared/rules/unit.ts';
import { type Code, codes, type DescriptorStatus } from './message.ts';
import { toHeaders } from './response-headers.ts';

const names = { limit: 'L', remaining: 'R', reset: 'T' };
const responseOnly = {
  response: names,
  request: undefined,
  perUnit: undefined,
  shadowed: undefined,
};

function status(limit: number, remaining: number, options: { unit?: Unit; code?: Code } = {}) {
  return {
    code: options.code ?? codes.ok,
    currentLimit: { name: '', requestsPerUnit: limit, unit: options.unit ?? 'hour' },
    limitRemaining: remaining,
    secondsUntilReset: 7,
  } satisfies DescriptorStatus;
}
const withoutLimit: DescriptorStatus = {
  code: codes.ok,
  currentLimit: undefined,
  limitRemaining: 0,
  secondsUntilReset: undefined,
};
const limitOf = (statuses: DescriptorStatus[], isQuota: boolean[] = []) =>
  toHeaders(responseOnly, statuses, isQuota, false).response[0]?.value;

test('the three headers are in order, in an answer and for the upstream, with the configured names', (t) => {
  const request = { limit: 'QL', remaining: 'QR', reset: 'QT' };
  t.deepEqual(toHeaders({ ...responseOnly, request }, [status(10, 4)], [false], false), {
    response: [
      { key: 'L', value: '10' },
      { key: 'R', value: '4' },
      { key: 'T', value: '7' },
    ],
    request: [
      { key: 'QL', value: '10' },
      { key: 'QR', value: '4' },
      { key: 'QT', value: '7' },
    ],
  });
});

test('the headers describe the descriptor with the lowest remaining count, the first of equals', (t) => {
  t.is(limitOf([status(10, 9), status(20, 3), status(30, 3)]), '20');
});

test('the headers describe the last enforced descriptor that is over its limit', (t) => {
  const over = { code: codes.overLimit };
  t.is(limitOf([status(10, 0, over), status(20, 0, over), status(30, 0)]), '20');
});

test('a quota over its limit does not displace an earlier descriptor without remaining hits', (t) => {
  const over = { code: codes.overLimit };
  t.is(limitOf([status(10, 0), status(20, 0, over)], [false, true]), '10');
});

test('a request without any limit gets no headers', (t) => {
  const all = { response: names, request: names, perUnit: names, shadowed: undefined };
  t.deepEqual(toHeaders(all, [withoutLimit], [false], false), { response: [], request: [] });
});

test('per unit, the lowest remaining count is reported after the three, from the shortest unit to the longest', (t) => {
  const options = { ...responseOnly, perUnit: names };
  const statuses = [
    status(100, 50, { unit: 'day' }),
    status(10, 9, { unit: 'minute' }),
    status(20, 8, { unit: 'minute' }),
    status(30, 8, { unit: 'minute' }),
    withoutLimit,
  ];
  t.deepEqual(toHeaders(options, statuses, [], false).response.slice(3), [
    { key: 'L-Minute', value: '20' },
    { key: 'R-Minute', value: '8' },
    { key: 'L-Day', value: '100' },
    { key: 'R-Day', value: '50' },
  ]);
});
