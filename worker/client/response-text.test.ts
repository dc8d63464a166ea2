import test from 'ava';
import { toResponseText } from './response-text.ts';

const ada = [
  { key: 'customer', value: 'ada' },
  { key: 'path', value: '/' },
];

test('the answer stands alone on the first line', (t) => {
  t.is(toResponseText({ overallCode: 1 }, { domain: 'd', descriptors: [] }), 'OK\n');
  t.is(toResponseText({ overallCode: 2 }, { domain: 'd', descriptors: [] }), 'OVER LIMIT\n');
  t.is(toResponseText({ overallCode: 0 }, { domain: 'd', descriptors: [] }), 'UNKNOWN (code 0)\n');
});

test('each descriptor has a line with its limit, the remaining hits and the time of the reset', (t) => {
  const currentLimit = { name: '', requestsPerUnit: 5, unit: 2 };
  const text = toResponseText(
    {
      overallCode: 2,
      statuses: [
        { code: 1, currentLimit, limitRemaining: 4, durationUntilReset: { seconds: '51' } },
        { code: 2, currentLimit: { ...currentLimit, name: 'burst' }, limitRemaining: 0 },
      ],
    },
    { domain: 'd', descriptors: [ada, [{ key: 'k', value: '' }]] },
  );
  t.is(
    text,
    [
      'OVER LIMIT',
      '  customer=ada,path=/: OK, limit 5 per minute, 4 remaining, resets in 51 s',
      '  k=: OVER LIMIT, limit 5 per minute (burst), 0 remaining',
      '',
    ].join('\n'),
  );
});

test('no limit and an unlimited rule are shown differently', (t) => {
  const statuses = [
    { code: 1, currentLimit: null, limitRemaining: 0 },
    { code: 1, currentLimit: null, limitRemaining: 4294967295 },
  ];
  t.is(
    toResponseText({ overallCode: 1, statuses }, { domain: 'my shop', descriptors: [ada, ada] }),
    [
      'OK',
      '  customer=ada,path=/: OK, no limit applies',
      '  customer=ada,path=/: OK, unlimited',
      "why no limit: npm run -s control-plane -- explain RULES --domain 'my shop' --descriptor customer=ada,path=/",
      '',
    ].join('\n'),
  );
});

test('headers for the proxy to add are shown', (t) => {
  const response = {
    overallCode: 1,
    responseHeadersToAdd: [{ key: 'RateLimit-Limit', value: '5' }],
    requestHeadersToAdd: [{ key: 'X-Left', value: '4' }],
  };
  t.is(
    toResponseText(response, { domain: 'd', descriptors: [] }),
    'OK\n  response header RateLimit-Limit: 5\n  request header X-Left: 4\n',
  );
});
