/**
 * A failed `assert.ok` without a message fails at once. Node 20 looks for the text of the expression, by its place in the code that tsx
 * made, in the source file, and parses that again and again: for minutes, in which nothing is said.
 */
import assert from 'node:assert/strict';

const { ok } = assert;
assert.ok = (value, message = 'The value is not truthy.') => ok(value, message);
