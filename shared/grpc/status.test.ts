// How the message of a status is encoded.
import test from 'ava';
import { toGrpcMessage } from './status.ts';

test('characters that a field may not have are percent-encoded, and a blank only at the start or the end', (t) => {
  t.is(toGrpcMessage(''), '');
  t.is(toGrpcMessage('as it is'), 'as it is');
  t.is(toGrpcMessage('100 %\r\n'), '100 %25%0D%0A');
  t.is(toGrpcMessage(' é '), '%20%C3%A9%20');
  t.is(toGrpcMessage(' '), '%20');
  t.is(toGrpcMessage('half \ud800'), 'half %EF%BF%BD');
});
