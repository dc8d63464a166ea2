// What one peer may cost, in one place: the bounds of a connection, and why each has its value.
// README.md beside this file tells what happens when one is passed.

/** SETTINGS_MAX_CONCURRENT_STREAMS: calls at once on a connection. Calls that the peer has reset but
 * that are not answered by their method yet count too, so that resetting buys nothing. */
export const maxConcurrentStreams = 1024;

/** SETTINGS_MAX_FRAME_SIZE: the protocol's smallest; requests are small, and larger frames would only
 * make one peer hold more of the event loop at once. */
export const maxFrameBytes = 16_384;

/** SETTINGS_MAX_HEADER_LIST_SIZE, as RFC 9113 10.5.1 counts it. What node:http2 and Envoy allow is of
 * this order. */
export const maxHeaderListBytes = 65_536;

/** A header block before decompression, CONTINUATION frames included. */
export const maxHeaderBlockBytes = 65_536;

/** CONTINUATION frames of one header block: enough for the block's bytes in frames of 1 KiB. */
export const maxContinuations = 64;

/** SETTINGS_HEADER_TABLE_SIZE: the protocol's default, which Envoy's encoder uses in full. */
export const headerTableBytes = 4096;

/** SETTINGS_INITIAL_WINDOW_SIZE: what a stream may send before we have looked at it. */
export const streamWindowBytes = 65_535;

/** The connection's receive window; a peer with many small calls is never held up by it. */
export const connectionWindowBytes = 1_048_576;

/** Bytes of unfinished messages, and of large header lists, that a connection may make us hold. */
export const maxBufferedBytes = 16_777_216;

/** Compressed messages that a connection may have unfolded at once: as many as there are threads for
 * it, and as fit into the bytes above when each becomes as large as it may. */
export const maxDecompressions = 4;

/** Answers that are written but not taken by the peer: beyond, its frames are not read, and of those that
 * were read at once the further calls are refused. */
export const maxUnsentBytes = 1_048_576;

/** What all connections together may make us hold by not going on: beyond, some are cut. What waits for us,
 * such as methods that are at work, is not among it. */
export const maxHeldBytes = 134_217_728;

/** What a call takes that is open, its message aside: about. */
export const callBytes = 1024;

/** A list of fields up to this is part of what a call takes; a larger one counts among the unfinished
 * messages. Requests of Envoy, tracing included, are well below. */
export const smallHeadBytes = 2048;

/** How much an answer tells of what is wrong, in characters: errors quote what callers sent. */
export const maxErrorTextLength = 1000;

/** A peer that takes nothing of what waits for it, on the socket or behind a window, or that does not
 * finish a frame, is cut after this. */
export const stalledMs = 30_000;

/** Between the first byte and the end of the peer's preface, and between the frames of one header
 * block. */
export const unfinishedMs = 10_000;

/** Frames that bring no call on (PING, SETTINGS, PRIORITY, empty DATA, unknown types, WINDOW_UPDATE,
 * RST_STREAM): this many at once, and this many per second. A call gives one of each kind back. */
export const overheadBurst = 10_000;
export const overheadPerSecond = 200;

/** Streams that are reset by the peer in the very read that opened them: this many at once, and per
 * second; nghttp2 has the same numbers. Callers that ran into their deadlines look like this, too, when
 * we were busy for longer than they wait, so there is room for what such a moment leaves in the socket. */
export const rapidResetBurst = 1000;
export const rapidResetsPerSecond = 33;

/** Streams that we had to reset because of what the peer sent on them. */
export const faultBurst = 200;
export const faultsPerSecond = 20;

/** A connection without any frame is asked for a sign of life after this, and cut when none comes. */
export const keepAliveMs = 7_200_000;
export const keepAliveTimeoutMs = 20_000;

/** Who has not gone on for so long with what he makes us hold is cut before those who hold more. */
export const noProgressMs = 1000;
