// The gRPC transport contract for the transport over @grpc/grpc-js.
import test from 'ava';
import { createGrpcJsTransport } from '../../worker/listen/grpc/grpc-js-transport.ts';
import { testGrpcTransport } from './grpc-transport.ts';

testGrpcTransport(test, { name: 'grpc-js', createTransport: createGrpcJsTransport });
