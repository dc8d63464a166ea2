// The exports of the router's package: all other modules are internal. Importing it starts nothing.

export { default as Type } from 'typebox';
export { type ErrorReport, type ReportError, toErrorText } from './answer/error-report.ts';
export { statusTitle, toErrorResponse } from './answer/problem.ts';
export { type App, type AppOptions, createApp } from './app.ts';

export { compress } from './around/compress.ts';
export { type RequestLogEntry, requestLog } from './around/request-log.ts';
export { type ClientOptions, client } from './client/client.ts';
export type { Answer, Client, Failure, Problem, Success } from './client/client-type.ts';
export { type Serving, startServing } from './command/serve.ts';
export { Controller, type ControllerContext, type Socket } from './controller.ts';
export { type CookieOptions, readCookie, setCookie } from './cookies.ts';
export type { Cors, CorsSpec } from './cors.ts';
export {
  AccessDenied,
  BadRequest,
  type FieldProblem,
  HttpError,
  type HttpErrorOptions,
  NotImplemented,
  Redirect,
  StartError,
  Stop,
} from './errors.ts';
export { files, sendFile } from './files.ts';
export { defineFolder, type FolderSpec, type StateOf } from './folder.ts';
export {
  basic,
  bearer,
  fromOrigins,
  type Guard,
  isSameSecret,
  limited,
  open,
  readCredentials,
} from './guard.ts';
export { defaultLimits, type Limits } from './limits.ts';
export { ServerEvent } from './live/server-event.ts';
export { fastifyOptions, fastifyPlugin } from './mounts/fastify.ts';
export { createNodeServer } from './mounts/node-http.ts';
export { type Args, type Fields, type Op, type OpSpec, op } from './op.ts';
export { named, optional, part } from './path-part.ts';
export type { BodyStream } from './request/body-stream.ts';
export type { BodyPart } from './request/multipart.ts';
export {
  type Around,
  type RequestLike,
  type ResponseDraft,
  type ResponseLike,
  type RoutedAnswer,
  type RoutedRequest,
  toHeaders,
} from './request/request.ts';
export { type ModuleTree, readModuleTree } from './table/module-tree.ts';
export { createTestClient, type TestAnswer, type TestClient } from './test-client.ts';
export { upload } from './upload.ts';
