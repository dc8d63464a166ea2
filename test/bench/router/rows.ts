// The requests to every server in the comparison, and the required answers.

export interface Row {
  readonly name: string;
  readonly method: 'GET' | 'POST';
  readonly target: string;
  readonly authorization?: string;
  /** Sent as JSON. */
  readonly body?: unknown;
  readonly status: number;
  /** Names of headers that each answer must have, so that all servers do the same work. */
  readonly headers?: readonly string[];
  /** The JSON value of the answer; undefined if each server's text differs. */
  readonly answer?: unknown;
}

export const order = {
  customer: 'c-1042',
  items: [
    { sku: 'bolt-m4', count: 12, price: 0.25 },
    { sku: 'nut-m4', count: 12, price: 0.1 },
    { sku: 'washer-m4', count: 24, price: 0.05 },
  ],
  note: 'leave it at the door',
  express: false,
};

/** About 10 kB of JSON. */
export const catalogue = Array.from({ length: 100 }, (_, at) => ({
  id: at,
  name: `article number ${at}`,
  tags: ['steel', 'm4', 'box of 100'],
  price: at / 4 + 1,
  available: at % 3 === 0,
}));

/** Plus an `x-request-id`: the router sets it on each answer, and its folder adds the others. */
export const headersOfMembers = {
  'x-served-by': 'members',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
};

export const rows: readonly Row[] = [
  {
    name: 'path and query parameter',
    method: 'GET',
    target: '/users/7?limit=5',
    status: 200,
    answer: { id: 7, limit: 5 },
  },
  {
    name: 'JSON body',
    method: 'POST',
    target: '/orders',
    body: order,
    status: 200,
    answer: { customer: 'c-1042', items: 3 },
  },
  { name: '10 kB answer', method: 'GET', target: '/catalogue', status: 200, answer: catalogue },
  {
    name: 'folder and guard',
    method: 'GET',
    target: '/members/7?limit=5',
    authorization: 'Bearer t-ann',
    status: 200,
    headers: [...Object.keys(headersOfMembers), 'x-request-id'],
    answer: { user: 'ann', id: 7, limit: 5 },
  },
  { name: 'not found', method: 'GET', target: '/nothing/here', status: 404 },
  { name: 'hello', method: 'GET', target: '/hello', status: 200, answer: { hello: 'world' } },
];
