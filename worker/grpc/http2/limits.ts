// All limits of a connection, with the reason for each value. shared/docs/behaviour.md describes what happens when they
// are exceeded.

/**
 * SETTINGS_MAX_CONCURRENT_STREAMS: concurrent calls on a connection. Calls that the peer has reset but whose method has
 * not answered yet count too, so that resetting gains nothing.
 */
export const maxConcurrentStreams = 1024;

/**
 * SETTINGS_MAX_FRAME_SIZE: the protocol's minimum; requests are small, and larger frames would only let one peer use
 * more of the event loop at once.
 */
export const maxFrameBytes = 16_384;

/** SETTINGS_MAX_HEADER_LIST_SIZE, computed as in RFC 9113 10.5.1. node:http2 and Envoy allow a similar size. */
export const maxHeaderListBytes = 65_536;

/** A header block before decompression, including CONTINUATION frames. */
export const maxHeaderBlockBytes = 65_536;

/** CONTINUATION frames of one header block: enough for the block's bytes in frames of 1 KiB. */
export const maxContinuations = 64;

/** SETTINGS_HEADER_TABLE_SIZE: the protocol's default, which Envoy's encoder uses in full. */
export const headerTableBytes = 4096;

/** SETTINGS_INITIAL_WINDOW_SIZE: what a peer may send on a stream before it is read. */
export const streamWindowBytes = 65_535;

/** The connection's receive window; large enough that many small calls never wait. */
export const connectionWindowBytes = 1_048_576;

/** Bytes of unfinished messages and large header lists stored per connection. */
export const maxBufferedBytes = 16_777_216;

/**
 * Compressed messages of a connection that are decompressed at the same time: as many as there are threads, and as fit
 * into `maxBufferedBytes` at maximum size.
 */
export const maxDecompressions = 4;

/**
 * Bytes of answers that the peer has not read: above this, its frames are not read, and further calls from frames
 * already read are refused.
 */
export const maxUnsentBytes = 1_048_576;

/**
 * Bytes that all stalled connections may hold together: above this, some are closed. Work that waits for this side is
 * not included.
 */
export const maxOccupiedBytes = 134_217_728;

/** Approximate bytes of an open call, without its message. */
export const callBytes = 1024;

/**
 * A header list up to this size is part of a call's bytes; a larger one counts as an unfinished message. Envoy's
 * requests, even with tracing, are well below.
 */
export const smallHeadBytes = 2048;

/** Longest error text of an answer, in characters: errors quote texts of callers. */
export const maxErrorTextLength = 1000;

/**
 * A peer that reads nothing of its output, on the socket or behind a window, or that does not finish a frame, is
 * disconnected after this time.
 */
export const stalledMs = 30_000;

/** Time limit from the first byte to the end of the peer's preface, and between the frames of a header block. */
export const unfinishedMs = 10_000;

/**
 * Frames that advance no call (PING, SETTINGS, PRIORITY, empty DATA, unknown types, WINDOW_UPDATE, RST_STREAM): this
 * many in a burst, and this many per second. Each call adds one of each kind.
 */
export const overheadBurst = 10_000;
export const overheadPerSecond = 200;

/**
 * Streams that the peer resets in the same read that opened them: this many in a burst, and per second; nghttp2 has the
 * same numbers. Callers whose deadlines expired while this process was busy behave the same, so there is room for as
 * many as such a pause leaves in the socket.
 */
export const rapidResetBurst = 1000;
export const rapidResetsPerSecond = 33;

/** Streams reset because of faults in the peer's frames. */
export const faultBurst = 200;
export const faultsPerSecond = 20;

/** A connection that is silent for this long is sent a PING. */
export const keepAliveMs = 7_200_000;
/** It is closed if the PING is not answered within this time. */
export const keepAliveTimeoutMs = 20_000;

/** A peer stalled for this long is disconnected before those that hold more. */
export const noProgressMs = 1000;
