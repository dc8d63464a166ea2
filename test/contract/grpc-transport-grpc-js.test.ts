// The gRPC transport contract for the transport over @grpc/grpc-js.
import test from 'ava';
import { createGrpcJsTransport } from '../../worker/listen/grpc/grpc-js-transport.ts';
import { testGrpcTransport } from './grpc-transport.ts';

testGrpcTransport(test, {
  name: 'grpc-js',
  createTransport: createGrpcJsTransport,
  skip: {
    'a header block may come in many frames': 'Node allows eight CONTINUATION frames',
    'who uses an unknown compression is told the known ones': 'the library does not say it',
    'a compressed message without a compression is refused':
      'the library takes the mark for nothing when no compression was announced',
    'a time that is almost one is refused': 'the library takes what it can read of it',
    'the longest time that can be written is not over at once':
      'the library counts milliseconds in 32 bits',
    'calls that cross the word to go are answered':
      'the library refuses them, and clients send them again elsewhere',
    'the age of a connection is evenly spread, give or take a tenth':
      'the library keeps its own time',
  },
});
