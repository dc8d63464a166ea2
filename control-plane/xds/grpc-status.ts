// How a status travels in the trailers of node:http2.
import { type GrpcStatus, toGrpcMessage } from '../../shared/grpc/status.ts';

const maxTextLength = 1024;

export function toTrailers(status: GrpcStatus, text: string): Record<string, string> {
  const trailers: Record<string, string> = { 'grpc-status': String(status) };
  if (text !== '') trailers['grpc-message'] = toGrpcMessage(text.slice(0, maxTextLength));
  return trailers;
}
