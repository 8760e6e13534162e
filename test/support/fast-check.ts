import fc from 'fast-check';
import { SEED } from './seed.ts';

/** fast-check, which begins at SEED. Tests import it from here (test/papers/structure.test.ts asserts it). */
fc.configureGlobal({ seed: SEED });
export default fc;
