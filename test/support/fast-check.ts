import fc from 'fast-check';
import { SEED } from './seed.ts';

/** fast-check, which begins at SEED. Tests import it from here (test/papers/structure.test.ts asserts it). */
fc.configureGlobal({ seed: SEED });
export default fc;

/** Any character but a lone surrogate. fast-check's own unit `binary` takes seconds before its first text. */
export const anyCharacter: fc.Arbitrary<string> = fc
  .oneof(fc.integer({ min: 0, max: 0xd7ff }), fc.integer({ min: 0xe000, max: 0x10ffff }))
  .map((point) => String.fromCodePoint(point));
