// What the gRPC transport must do, on the engine of the worker.
import test from 'ava';
import { testGrpcTransport } from './grpc-transport.ts';

testGrpcTransport(test);
