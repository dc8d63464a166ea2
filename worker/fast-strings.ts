// Keeps what decisions do with strings fast, whatever libraries are loaded: imported before them.
//
// When a class extends String, as one of ioredis does, V8 turns String.prototype into a dictionary,
// and from then on optimized code looks `charCodeAt` and the others up at each call instead of
// inlining them: a fifth of the CPU of a decision. V8 lets a prototype be that code has read from by
// way of an object, once that code has run often enough to have an inline cache.
const text = new String('a');

function readThroughObject(): number {
  return text.charCodeAt(0);
}

/** V8 gives a function its inline caches after eight calls. */
const calls = 100;

for (let call = 0; call < calls; call++) readThroughObject();
