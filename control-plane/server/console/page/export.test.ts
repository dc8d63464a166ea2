import test from 'ava';
import { toCsv, toJsonRows } from './export.ts';

const columns = ['Value', 'Refused'];

test('texts with commas, quotes and line breaks are single fields of CSV', (t) => {
  t.is(
    toCsv(columns, [
      ['a,"b"\nc', 5],
      ['plain', null],
    ]),
    'Value,Refused\r\n"a,""b""\nc",5\r\nplain,\r\n',
  );
});

test('a foreign text is not a formula in a spreadsheet, and a negative number stays a number', (t) => {
  t.is(
    toCsv(columns, [
      ['=cmd()', -1],
      ['@x', 0],
    ]),
    "Value,Refused\r\n'=cmd(),-1\r\n'@x,0\r\n",
  );
});

test('JSON has an object for each row', (t) => {
  t.deepEqual(JSON.parse(toJsonRows(columns, [['ada', 5]])), [{ Value: 'ada', Refused: 5 }]);
});
