// The gRPC transport contract for the transport over our own HTTP/2 engine.
import test from 'ava';
import { createHttp2Transport } from '../../worker/listen/grpc/http2/http2-transport.ts';
import { testGrpcTransport } from './grpc-transport.ts';

testGrpcTransport(test, { name: 'http2', createTransport: createHttp2Transport });
