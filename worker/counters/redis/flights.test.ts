import test from 'ava';
import { Batch } from './batch.ts';
import { type Flight, Flights, type Lane } from './flights.ts';

function flightOn(lane: Lane): Flight {
  return { lane, batch: new Batch(undefined), writtenMs: 0, isAnswered: false };
}

test('a lane is busy from when its batch is added until it is removed', (t) => {
  const [one, other] = [{} as Lane, {} as Lane];
  const flights = new Flights();
  const [first, second] = [flightOn(one), flightOn(other)];
  flights.add(first);
  flights.add(second);
  t.true(flights.has(one) && flights.has(other));
  flights.remove(one);
  t.false(flights.has(one));
  t.deepEqual(flights.list(), [second]);
  flights.remove(one);
  t.is(flights.size, 1);
});

test('a list is of the flights as they were when it was asked for', (t) => {
  const lanes = [{} as Lane, {} as Lane];
  const flights = new Flights();
  for (const lane of lanes) flights.add(flightOn(lane));
  const seen = flights.list().map(({ lane }) => {
    flights.remove(lane);
    return lane;
  });
  t.deepEqual(seen, lanes);
  t.is(flights.size, 0);
});
