// Prevents libraries that are loaded later from making string methods slow.
//
// When a class extends String, as one of ioredis does, V8 converts String.prototype to a dictionary, and optimized code
// then searches for `charCodeAt` and the others at each call instead of inlining them: a fifth of the CPU of a
// decision. V8 spares a prototype that code with an inline cache has read through an object.
const text = new String('a');

function readThroughObject(): number {
  return text.charCodeAt(0);
}

/** V8 creates a function's inline caches after eight calls. */
const calls = 100;

for (let call = 0; call < calls; call++) readThroughObject();
