// All limits of a connection, and why each has its value. shared/docs/behaviour.md describes what
// happens beyond them.

/** SETTINGS_MAX_CONCURRENT_STREAMS: calls at once on a connection. Calls that the peer has reset but that
 * are not answered by their method yet count too, so that resetting gains nothing. */
export const maxConcurrentStreams = 1024;

/** SETTINGS_MAX_FRAME_SIZE: the protocol's smallest; requests are small, and larger frames would only let
 * one peer take more of the event loop at once. */
export const maxFrameBytes = 16_384;

/** SETTINGS_MAX_HEADER_LIST_SIZE, as RFC 9113 10.5.1 counts it. node:http2 and Envoy allow a similar size. */
export const maxHeaderListBytes = 65_536;

/** A header block before decompression, CONTINUATION frames included. */
export const maxHeaderBlockBytes = 65_536;

/** CONTINUATION frames of one header block: enough for the block's bytes in frames of 1 KiB. */
export const maxContinuations = 64;

/** SETTINGS_HEADER_TABLE_SIZE: the protocol's default, which Envoy's encoder uses in full. */
export const headerTableBytes = 4096;

/** SETTINGS_INITIAL_WINDOW_SIZE: what a stream may send before we have read it. */
export const streamWindowBytes = 65_535;

/** The connection's receive window; large enough that many small calls never wait. */
export const connectionWindowBytes = 1_048_576;

/** Bytes of unfinished messages and large header lists held per connection. */
export const maxBufferedBytes = 16_777_216;

/** Compressed messages that a connection may have decompressed at once: as many as there are threads, and
 * as fit into the bytes above at maximum size. */
export const maxDecompressions = 4;

/** Bytes of answers that the peer has not read: beyond, its frames are not read, and further calls of those
 * already read are refused. */
export const maxUnsentBytes = 1_048_576;

/** Bytes that all stalled connections together may hold: beyond, some are cut. Work that waits for us is
 * not included. */
export const maxHeldBytes = 134_217_728;

/** Approximate bytes of an open call, without its message. */
export const callBytes = 1024;

/** A header list up to this size is part of a call's bytes; a larger one counts as unfinished message.
 * Requests of Envoy, with tracing, are well below. */
export const smallHeadBytes = 2048;

/** Longest error text of an answer, in characters: errors quote what callers sent. */
export const maxErrorTextLength = 1000;

/** A peer that reads nothing of its output, on the socket or behind a window, or that does not finish a
 * frame, is cut after this. */
export const stalledMs = 30_000;

/** Time from the first byte to the end of the peer's preface, and between the frames of a header block. */
export const unfinishedMs = 10_000;

/** Frames that advance no call (PING, SETTINGS, PRIORITY, empty DATA, unknown types, WINDOW_UPDATE,
 * RST_STREAM): this many at once, and this many per second. Each call adds one of each kind. */
export const overheadBurst = 10_000;
export const overheadPerSecond = 200;

/**
 * Streams that the peer resets in the same read that opened them: this many at once, and per second; nghttp2 has
 * the same numbers. Callers whose deadlines expired while we were busy behave the same, so there is room for as
 * many as such a moment leaves in the socket.
 */
export const rapidResetBurst = 1000;
export const rapidResetsPerSecond = 33;

/** Streams that we had to reset because of the peer's frames. */
export const faultBurst = 200;
export const faultsPerSecond = 20;

/** A connection that is silent for this long is pinged. */
export const keepAliveMs = 7_200_000;
/** Without an answer to the ping it is closed after this. */
export const keepAliveTimeoutMs = 20_000;

/** A peer stalled for this long is cut before those that hold more. */
export const noProgressMs = 1000;
