import type { Mutant } from './mutate.ts';

/** A fault that no test can notice, or that none has to: `original` in the line `within`. */
interface Harmless extends Pick<Mutant, 'file' | 'within' | 'original'> {
  readonly reason: string;
}

const HARMLESS: readonly Harmless[] = [
  {
    ...{ file: 'pipeline/checkpoints.ts', within: '#end = 0;', original: '0' },
    reason: 'encode sets it before anything reads it',
  },
  {
    ...{ file: 'pipeline/pieces.ts', within: "encoder.off('error', reject);", original: "'error'" },
    reason: 'the promise is settled by then, so it cannot be rejected',
  },
  {
    ...{
      file: 'pipeline/compress.ts',
      within: '[zstdConstants.ZSTD_c_windowLog ?? 101]: 18,',
      original: '101',
    },
    reason: 'each Node that has zstd has the constant',
  },
];

/** Why no test notices this fault. null: one should. */
export function reasonToLive({ file, within, original }: Mutant): string | null {
  const known = HARMLESS.find(
    (one) => one.file === file && one.within === within && one.original === original,
  );
  return known?.reason ?? null;
}
