// Addresses of listeners, as settings and logs write them, and the errors when listening fails.
import { existsSync } from 'node:fs';
import type { Server } from 'node:net';
import { dirname } from 'node:path';
import { AppError, errorText } from '../../shared/errors.ts';
import { showHostPort } from '../../shared/host-port.ts';

/** With port 0 a free port is used. */
export type ListenTarget =
  | {
      readonly host: string;
      readonly port: number;
      /** True if it is not shared with the worker's other processes, as ports otherwise are. */
      readonly exclusive?: boolean;
    }
  | {
      readonly path: string;
      /** True if another process of this worker may listen there as well and share it (worker/processes). */
      readonly isShared?: boolean;
    };

/** A bound address. */
export interface ListenAddress {
  /** As logs write it: `0.0.0.0:8080`, `[::1]:8080`, or a unix socket's path. */
  readonly text: string;
  /** 0 for a unix socket. */
  readonly port: number;
}

/**
 * The name of a listener for operators, and the settings of its address, which the error names when listening fails.
 */
export interface ListenerNames {
  readonly listener: string;
  readonly host: string;
  readonly port: string;
  /** Empty without a unix socket. */
  readonly path: string;
}

/** Rejects with an AppError `cannot_start` that names the address and the setting to change. */
export function listen(
  server: Server,
  target: ListenTarget,
  names: ListenerNames,
): Promise<ListenAddress> {
  return new Promise((resolve, reject) => {
    const onError = (error: Error) => reject(toListenError(error, target, names));
    server.once('error', onError);
    server.listen('path' in target ? { path: target.path } : target, () => {
      server.off('error', onError);
      // A listener that fails later, for example for lack of file descriptors, stays open.
      server.on('error', () => {});
      resolve(boundAddress(server));
    });
  });
}

/** The address of a listening server. */
export function boundAddress(server: Server): ListenAddress {
  const address = server.address();
  if (address === null) throw new Error('the server does not listen');
  if (typeof address === 'string') return { text: address, port: 0 };
  return { text: showHostPort({ host: address.address, port: address.port }), port: address.port };
}

/** The error for the operator who starts the program. */
export function toListenError(
  error: unknown,
  target: ListenTarget,
  names: ListenerNames,
): AppError {
  const where = 'path' in target ? `the unix socket ${target.path}` : showHostPort(target);
  return new AppError(
    'cannot_start',
    `cannot listen for ${names.listener} on ${where}: ${explain(error, target, names)}`,
    { cause: error },
  );
}

function explain(
  error: unknown,
  target: ListenTarget,
  { host, port, path }: ListenerNames,
): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if ('path' in target) {
    if (code === 'EADDRINUSE') return `another process listens there; set ${path} to another path`;
    // Node reports a missing directory as a missing permission.
    if (code === 'ENOENT' || (code === 'EACCES' && !existsSync(dirname(target.path)))) {
      return `its directory does not exist; create it, or change ${path}`;
    }
    if (code === 'ENOTDIR') return `a part of the path is not a directory; change ${path}`;
    if (code === 'EACCES' || code === 'EPERM') {
      return `permission denied; let this user write to its directory, or change ${path}`;
    }
    return `${errorText(error)}; check ${path}`;
  }
  if (code === 'EADDRINUSE') {
    return `the port is in use; set ${port}${host === port ? '' : ` (and ${host})`} to another`;
  }
  if (code === 'EACCES') {
    return `permission denied; set ${port} to 1024 or above, or allow this process low ports`;
  }
  if (code === 'EADDRNOTAVAIL') {
    return `this machine has no such address; set ${host} to one that it has, or to 0.0.0.0`;
  }
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') {
    return `the name cannot be resolved; set ${host} to an address of this machine`;
  }
  return `${errorText(error)}; check ${host === port ? port : `${port} and ${host}`}`;
}
